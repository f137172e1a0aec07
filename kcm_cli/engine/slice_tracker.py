"""Which EndpointSlices a controller has written, so that it does not plan on a cache that does not show them yet,
and is not called by the echo of its own writes.

Two measures are in use, as upstream has it: a slice is old if its resource version is below the written one; a
change calls for a sync if its generation is above the written one (labels and annotations do not count).

upstream: staging/src/k8s.io/endpointslice/util/endpointslice_tracker.go
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kcm_cli.api.discovery import MANAGED_BY, SERVICE_NAME, EndpointSlice
from kcm_cli.machinery.meta import number_of
from kcm_cli.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class _Written:
    """A slice as it was written last; ``deleted``: a deletion is all that its cache has still to show."""

    generation: int
    version: int
    deleted: bool = False


class SliceTracker:
    """The slices that one controller (``manager`` in their labels) has written, by Service.

    ``changed(key)`` is called when somebody else changed a slice of a Service, ``caught_up(key)`` when the cache
    moved on for a Service that had to wait.
    """

    def __init__(self, manager: str, changed: Callable[[str], None], caught_up: Callable[[str], None]) -> None:
        self._manager = manager
        self._changed = changed
        self._caught_up = caught_up
        self._written: dict[str, dict[str, _Written]] = {}
        self._waiting: set[str] = set()
        self._cache_version: Callable[[], str] = str

    def listen(self, informer: Informer[EndpointSlice]) -> None:
        """Follow this cache; once, before the first question."""
        self._cache_version = lambda: informer.last_version
        informer.listen(on_add=self._on_add, on_update=self._on_update, on_delete=self._on_delete)

    def wrote(self, slice_: EndpointSlice) -> None:
        """Note the server's answer to a creation or an update."""
        own = self._written.setdefault(slice_.service_key, {})
        own[slice_.uid] = _Written(slice_.metadata.generation, slice_.version)

    def follow(self, slice_: EndpointSlice) -> None:
        """Note a slice that is as it should be, if it is not known."""
        self._written.setdefault(slice_.service_key, {}).setdefault(
            slice_.uid, _Written(slice_.metadata.generation, slice_.version)
        )

    def deleted(self, key: str, uid: str) -> None:
        """Note that a slice of a Service has been deleted."""
        self._written.setdefault(key, {})[uid] = _Written(0, 0, deleted=True)

    def forget(self, key: str) -> None:
        """The Service needs no tracking any more."""
        self._written.pop(key, None)
        self._waiting.discard(key)

    def stale(self, key: str, slices: Iterable[EndpointSlice]) -> bool:
        """Whether these slices of a Service, from the cache, are older than what was written."""
        own = self._written.get(key)
        if not own:
            return False
        shown = {slice_.uid: slice_.version for slice_ in slices}
        if any(self._old(own, uid, shown.get(uid)) for uid in tuple(own)):
            self._waiting.add(key)
            return True
        self._waiting.discard(key)
        return False

    def _old(self, own: dict[str, _Written], uid: str, version: int | None) -> bool:
        """Whether a slice is shown (``version``; None: not at all) older than it was written."""
        written = own[uid]
        if version is not None:
            return written.deleted or version < written.version
        if written.deleted or number_of(self._cache_version()) >= written.version:
            del own[uid]  # it is gone for good, and the news of it may have come before the server's answer to us
            return False
        return True

    # -- events

    def _on_add(self, slice_: EndpointSlice) -> None:
        self._shown(slice_)
        if self._managed(slice_) and self._foreign_change(slice_):
            self._call(slice_)

    def _on_update(self, old: EndpointSlice, new: EndpointSlice) -> None:
        self._shown(new)
        if old.labels.get(SERVICE_NAME) != new.labels.get(SERVICE_NAME):
            self._call(new)
            self._call(old)
        elif self._managed(old) != self._managed(new) or (self._managed(new) and self._foreign_change(new)):
            self._call(new)

    def _on_delete(self, slice_: EndpointSlice) -> None:
        written = self._written.get(slice_.service_key, {}).pop(slice_.uid, None)
        self._shown(slice_)
        if self._managed(slice_) and written is not None and not written.deleted:
            self._call(slice_)

    def _managed(self, slice_: EndpointSlice) -> bool:
        return slice_.labels.get(MANAGED_BY) == self._manager

    def _foreign_change(self, slice_: EndpointSlice) -> bool:
        written = self._written.get(slice_.service_key, {}).get(slice_.uid)
        return written is None or (not written.deleted and slice_.metadata.generation > written.generation)

    def _call(self, slice_: EndpointSlice) -> None:
        if slice_.service_key:
            self._changed(slice_.service_key)

    def _shown(self, slice_: EndpointSlice) -> None:
        key = slice_.service_key
        if key in self._waiting:
            self._waiting.discard(key)
            self._caught_up(key)
