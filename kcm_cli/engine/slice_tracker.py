"""Which changes of EndpointSlices are the echo of a controller's own writes, and which were made by others.

A change calls for a sync if its generation is above the written one (labels and annotations do not count). Kept beside
``own_writes``, which knows versions: another client's change may come before the cache shows ours, and the other way
round.

upstream: staging/src/k8s.io/endpointslice/util/endpointslice_tracker.go
"""

from collections.abc import Callable

from kcm_cli.api.discovery import MANAGED_BY, SERVICE_NAME, EndpointSlice
from kcm_cli.runtime.informer import Informer

_DELETED = -1


class SliceTracker:
    """The slices that one controller (``manager`` in their labels) has written, by Service: their generations by uid.

    ``changed(key)`` is called when another client changed a slice of a Service.
    """

    def __init__(self, manager: str, informer: Informer[EndpointSlice], changed: Callable[[str], None]) -> None:
        self._manager = manager
        self._informer = informer
        self._changed = changed
        self._written: dict[str, dict[str, int]] = {}
        informer.listen(on_add=self._on_add, on_update=self._on_update, on_delete=self._on_delete)

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

    # -- events

    def _on_add(self, slice_: EndpointSlice) -> None:
        if self._managed(slice_) and self._foreign_change(slice_):
            self._call(slice_)

    def _on_update(self, old: EndpointSlice, new: EndpointSlice) -> None:
        if old.labels.get(SERVICE_NAME) != new.labels.get(SERVICE_NAME):
            self._call(new)
            self._call(old)
        elif self._managed(old) != self._managed(new) or (self._managed(new) and self._foreign_change(new)):
            self._call(new)

    def _on_delete(self, slice_: EndpointSlice) -> None:
        written = self._written.get(slice_.service_key, {}).pop(slice_.uid, None)
        if self._managed(slice_) and written not in (None, _DELETED):
            self._call(slice_)

    def _managed(self, slice_: EndpointSlice) -> bool:
        return slice_.labels.get(MANAGED_BY) == self._manager

    def _foreign_change(self, slice_: EndpointSlice) -> bool:
        written = self._written.get(slice_.service_key, {}).get(slice_.uid)
        return written is None or (written != _DELETED and slice_.metadata.generation > written)

    def _call(self, slice_: EndpointSlice) -> None:
        if slice_.service_key:
            self._changed(slice_.service_key)
