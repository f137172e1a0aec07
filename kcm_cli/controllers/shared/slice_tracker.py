"""Which changes of EndpointSlices are the echo of a controller's own writes, and which were made by others.

A change calls for a sync if its generation is above the written one (labels and annotations do not count). Kept beside
``own_writes``, which knows versions: another client's change may come before the cache shows ours, and the other way
round.

upstream: staging/src/k8s.io/endpointslice/util/endpointslice_tracker.go
"""

from collections.abc import Callable
from typing import Any

from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, SERVICE_NAME, EndpointSlice
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Keys, Watch
from kcm_cli.runtime.informer import Informer

_DELETED = -1


class SliceTracker:
    """Generations of the slices that one controller (``manager`` in their labels) has written, by Service and uid."""

    def __init__(self, manager: str, informer: Informer[EndpointSlice]) -> None:
        self._manager = manager
        self._informer = informer
        self._written: dict[str, dict[str, int]] = {}

    def wrote(self, slice_: EndpointSlice) -> None:
        """Note the server's answer to a creation or an update."""
        if self._holds(slice_.key, slice_.uid) or self._informer.progress.behind(slice_.version):
            self._written.setdefault(slice_.service_key, {})[slice_.uid] = slice_.metadata.generation

    def follow(self, slice_: EndpointSlice) -> None:
        """Note a slice that is as it should be, if it is not known."""
        self._written.setdefault(slice_.service_key, {}).setdefault(slice_.uid, slice_.metadata.generation)

    def deleted(self, key: str, name: str, uid: str) -> None:
        """Note that a slice (its ``namespace/name``) of a Service has been deleted."""
        if self._holds(name, uid):
            self._written.setdefault(key, {})[uid] = _DELETED

    def forget(self, key: str) -> None:
        """The Service needs no tracking any more."""
        self._written.pop(key, None)

    def _holds(self, name: str, uid: str) -> bool:
        held = self._informer.store.get(name)
        return held is not None and held.uid == uid

    # -- events: the Services of slices that another client changed

    def slice_added(self, slice_: EndpointSlice) -> Keys:
        return _service(slice_) if self._managed(slice_) and self._foreign_change(slice_) else ()

    def slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> Keys:
        if old.labels.get(SERVICE_NAME) != new.labels.get(SERVICE_NAME):
            return (*_service(new), *_service(old))
        changed = self._managed(old) != self._managed(new) or (self._managed(new) and self._foreign_change(new))
        return _service(new) if changed else ()

    def slice_deleted(self, slice_: EndpointSlice) -> Keys:
        written = self._written.get(slice_.service_key, {}).pop(slice_.uid, None)
        return _service(slice_) if self._managed(slice_) and written not in (None, _DELETED) else ()

    def _managed(self, slice_: EndpointSlice) -> bool:
        return slice_.labels.get(MANAGED_BY) == self._manager

    def _foreign_change(self, slice_: EndpointSlice) -> bool:
        written = self._written.get(slice_.service_key, {}).get(slice_.uid)
        return written is None or (written != _DELETED and slice_.metadata.generation > written)


def _service(slice_: EndpointSlice) -> tuple[str, ...]:
    return (slice_.service_key,) if slice_.service_key else ()


def slices(after: Callable[[ControllerContext], float], part: Callable[[Any], Any]) -> Watch:
    """The declaration that a controller whose ``part`` is a SliceTracker watches EndpointSlices."""
    return Watch(
        ENDPOINT_SLICES,
        added=SliceTracker.slice_added,
        updated=SliceTracker.slice_updated,
        deleted=SliceTracker.slice_deleted,
        after=after,
        part=part,
    )
