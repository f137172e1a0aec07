"""Caches what a Service's last sync computed from each pod, since usually one pod of many has changed.

It holds the pods and the Service of the last sync, which are the informers' objects.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kcm_cli.api.core import Pod, Service

T = TypeVar("T")
Note = str | None


class Memo(Generic[T]):
    """Values by pod, valid while the pod, the Service and ``note`` (all else that they depend on) are the same."""

    def __init__(self) -> None:
        self._service: Service | None = None
        self._last: dict[str, tuple[Pod, Note, T]] = {}
        self._now: dict[str, tuple[Pod, Note, T]] = {}

    def start(self, service: Service) -> None:
        """Begin a sync. Values that the last sync did not use are dropped."""
        self._last = self._now if service is self._service else {}
        self._now = {}
        self._service = service

    def get(self, pod: Pod, note: Note, make: Callable[[Pod, Note], T]) -> T:
        """The value of a pod, computed if the pod is new or has changed."""
        uid = pod.metadata.uid
        entry = self._last.get(uid)
        if entry is None or entry[0] is not pod or entry[1] != note:
            entry = (pod, note, make(pod, note))
        self._now[uid] = entry
        return entry[2]
