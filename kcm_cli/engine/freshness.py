"""Our own writes that the cache has not shown yet.

A controller that plans on an object older than its own last write plans twice what it has done, and its next write
is refused. Resource versions are numbers that grow with every write, so that older can be told.

upstream: pkg/controller/util/consistency (gates StaleControllerConsistency*)
"""

from collections.abc import Callable
from functools import partial

from kcm_cli.component.metrics import Registry
from kcm_cli.machinery.meta import Object, number_of
from kcm_cli.runtime.informer import AnyInformer

AGAIN_S = 1.0
"""The watch brings a stale key back at once; this is how long to wait where it does not."""


class Freshness:
    """Remembers the version of each object of some caches as this controller wrote it last, by uid.

    Only of objects that the cache holds: the news that one is gone may come before the answer to a write.
    """

    def __init__(self, *informers: AnyInformer) -> None:
        self._informers = informers
        self._written: dict[str, int] = {}
        for informer in informers:
            informer.listen(on_delete=self._gone)

    def __len__(self) -> int:
        return len(self._written)

    def wrote(self, obj: Object) -> None:
        """Note the server's answer to a write."""
        if any(_holds(informer, obj) for informer in self._informers):
            self._written[obj.uid] = obj.version

    def stale(self, obj: Object) -> bool:
        """Whether the cached object is older than what we wrote."""
        written = self._written.get(obj.uid)
        if written is None:
            return False
        if obj.version < written:
            return True
        del self._written[obj.uid]
        return False

    def _gone(self, obj: Object) -> None:
        self._written.pop(obj.uid, None)


def stale_sync_skips(registry: Registry, controller: str, kind: str) -> Callable[[str, str], None]:
    """The counter of syncs of a kind that were put off, for ``Consistency``."""
    family = registry.counter(
        f"{controller}_controller_stale_sync_skips_total",
        f"How often a {kind} was not synced since a cache had not caught up.",
        labels=("group", "resource"),
    )
    return lambda group, resource: family.labels(group, resource).inc()


def _holds(informer: AnyInformer, obj: Object) -> bool:
    known = informer.store.get(obj.key)
    return known is not None and known.uid == obj.uid


class Consistency:
    """Per owner, how far each cache must have come: to the last version that a sync of the owner wrote.

    Versions of all kinds come from one count, so a cache that has seen a later version of anything of its kind has
    seen the write, too. A key that has to wait is queued again as soon as its cache has caught up, or after a while.
    """

    def __init__(
        self,
        enqueue: Callable[[str], None],
        later: Callable[[float, Callable[[], object]], object],
        *,
        enabled: bool = True,
        skipped: Callable[[str, str], None] | None = None,
    ) -> None:
        """``later`` calls back after so many seconds, as ``Clock.call_later``. ``enabled`` False: nobody waits.
        ``skipped`` is told of each sync that is put off: the group and resource of the cache that is behind."""
        self._enqueue = enqueue
        self._later = later
        self._enabled = enabled
        self._skipped = skipped
        self._written: dict[str, dict[AnyInformer, int]] = {}
        self._seen: dict[AnyInformer, int] = {}
        self._waiting: dict[AnyInformer, set[str]] = {}

    def follow(self, *informers: AnyInformer) -> None:
        """Note what these caches show."""
        for informer in informers:
            self._seen[informer] = 0
            self._waiting[informer] = set()
            shown = partial(self._shown, informer)
            informer.listen(on_add=shown, on_update=partial(self._updated, informer), on_delete=shown)

    def wrote(self, key: str, informer: AnyInformer, obj: Object) -> None:
        """The server's answer to a write on behalf of ``key``."""
        if not self._enabled:
            return
        written = self._written.setdefault(key, {})
        written[informer] = max(obj.version, written.get(informer, 0))

    def must_wait(self, key: str) -> bool:
        """Whether a cache does not show yet what an earlier sync of this key did."""
        informer = self.behind(key)
        if informer is not None and self._skipped is not None:
            self._skipped(informer.resource.gvr.group, informer.resource.plural)
        return informer is not None

    def behind(self, key: str) -> AnyInformer | None:
        """A cache that this key has to wait for; None if it may read all of them."""
        for informer, version in self._written.get(key, {}).items():
            if max(self._seen[informer], number_of(informer.last_version)) < version:
                self._wait(informer, key)
                return informer
        self.forget(key)
        return None

    def forget(self, key: str) -> None:
        """The owner is gone, or all caches show what was written for it."""
        if self._written.pop(key, None) is not None:
            for waiting in self._waiting.values():
                waiting.discard(key)

    def _wait(self, informer: AnyInformer, key: str) -> None:
        if key not in self._waiting[informer]:
            self._waiting[informer].add(key)
            self._later(AGAIN_S, partial(self._waited, informer, key))

    def _waited(self, informer: AnyInformer, key: str) -> None:
        if key in self._waiting[informer]:
            self._waiting[informer].discard(key)
            self._enqueue(key)

    def _updated(self, informer: AnyInformer, old: Object, new: Object) -> None:
        self._shown(informer, new)

    def _shown(self, informer: AnyInformer, obj: Object) -> None:
        version = obj.version
        if version <= self._seen[informer]:
            return
        self._seen[informer] = version
        waiting = self._waiting[informer]
        for key in tuple(waiting):
            if self._written.get(key, {}).get(informer, 0) <= version:
                waiting.discard(key)
                self._enqueue(key)
