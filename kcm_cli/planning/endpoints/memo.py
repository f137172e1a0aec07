"""Caches what a Service's last sync computed from each pod, since usually one pod of many has changed.

It holds the pods and the Service of the last sync, which are the informers' objects.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kcm_cli.api.core import Pod, Service

S = TypeVar("S")
T = TypeVar("T")
Note = str | None


class Memo(Generic[T, S]):
    """Values by pod, valid while the pod, the Service and ``note`` (all else that they depend on) are the same.
    ``share``: makes what the values of all pods have in common, valid while the Service is the same."""

    def __init__(self, share: Callable[[Service], S]) -> None:
        self._share = share
        self._shared: tuple[Service, S] | None = None
        self._last: dict[str, tuple[Pod, Note, T]] = {}
        self._now: dict[str, tuple[Pod, Note, T]] = {}

    def start(self, service: Service) -> S:
        """Begin a sync; returns what its values share. Values that the last sync did not use are dropped."""
        if self._shared is None or self._shared[0] is not service:
            self._shared, self._now = (service, self._share(service)), {}
        self._last, self._now = self._now, {}
        return self._shared[1]

    def get(self, pod: Pod, note: Note, make: Callable[[Pod, Note], T]) -> T:
        """The value of a pod, computed if the pod is new or has changed."""
        uid = pod.metadata.uid
        entry = self._last.get(uid)
        if entry is None or entry[0] is not pod or entry[1] != note:
            entry = (pod, note, make(pod, note))
        self._now[uid] = entry
        return entry[2]
