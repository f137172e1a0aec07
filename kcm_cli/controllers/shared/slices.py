"""EndpointSlices: which changes are the echo of a controller's own writes, the writes themselves, and their totals.

A change calls for a sync if its generation is above the written one (labels and annotations do not count). Kept beside
``own_writes``, which knows versions: another client's change may come before the cache shows ours, and the other way
round.

upstream: staging/src/k8s.io/endpointslice/{reconciler.go#finalize,util/endpointslice_tracker.go}
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, SERVICE_NAME, EndpointSlice
from kcm_cli.component.metrics import Registry, Stability
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Keys, Watch
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Action, Create, Delete, Plan, Update
from kcm_cli.planning.endpoints.slices import Efficiency
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


class SliceTotals:
    """How many endpoints and slices there are and would do, of all keys together, kept up to date from each sync. None
    is shown before the first one. ``limit``: endpoints that a slice may hold."""

    def __init__(self, registry: Registry, prefix: str, limit: int, stability: Stability = Stability.ALPHA) -> None:
        self._limit = limit
        self._gauges = tuple(
            registry.gauge(f"{prefix}{name}", text, stability=stability)
            for name, text in (
                ("endpoints_desired", "How many endpoints there should be."),
                ("num_endpoint_slices", "How many EndpointSlices there are."),
                ("desired_endpoint_slices", "How many EndpointSlices there would be if each were full."),
            )
        )
        self._totals: dict[str, tuple[int, int, int]] = {}
        self._sums = [0, 0, 0]

    def put(self, key: str, groups: Collection[Efficiency], *, least: int = 0) -> None:
        """What a sync of a key found. ``least``: slices that it needs without endpoints."""
        ideal = sum(-(-group.endpoints // self._limit) for group in groups)
        totals = sum(group.endpoints for group in groups), sum(group.slices for group in groups), max(ideal, least)
        self._move(self._totals.get(key, (0, 0, 0)), totals)
        self._totals[key] = totals

    def forget(self, key: str) -> None:
        """The key has no slices any more."""
        before = self._totals.pop(key, None)
        if before is not None:
            self._move(before, (0, 0, 0))

    def _move(self, before: tuple[int, int, int], after: tuple[int, int, int]) -> None:
        for index, gauge in enumerate(self._gauges):
            self._sums[index] += after[index] - before[index]
            gauge.labels().set(float(self._sums[index]))


class SliceSyncError(SyncError):
    """Slices could not all be written, or not all endpoints be placed; each of the reasons once.

    upstream: apimachinery pkg/util/errors#aggregate.Error
    """

    def __init__(self, problems: Iterable[str]) -> None:
        texts = list(dict.fromkeys(problems))
        super().__init__(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


class WriteFailure(msgspec.Struct, frozen=True):
    """The write that failed, and why."""

    action: Action
    error: Exception

    def text(self, owner: str) -> str:
        """``failed to update web-abc EndpointSlice for Service ns/web: …``; ``owner`` with its kind."""
        match self.action:
            case Create():
                return f"failed to create EndpointSlice for {owner}: {self.error}"
            case Update(obj=slice_):
                return f"failed to update {slice_.name} EndpointSlice for {owner}: {self.error}"
            case Delete(name=name):
                return f"failed to delete {name} EndpointSlice for {owner}: {self.error}"
        return str(self.error)


class SliceWrites:
    """Carries out plans over slices. ``count`` is called for each write: create, update or delete."""

    def __init__(self, executor: Executor, tracker: SliceTracker, count: Callable[[str], None]) -> None:
        self._executor = executor
        self._tracker = tracker
        self._count = count

    async def run(self, key: str, plan: Plan) -> WriteFailure | None:
        """Write the slices of a Service (its key) until something fails; returns that."""
        outcome = await self._executor.run(plan)
        for done in outcome.done:
            action = done.action
            if isinstance(action, Delete):
                self._tracker.deleted(key, f"{action.namespace}/{action.name}", action.uid)
                self._count("delete")
            elif isinstance(done.result, EndpointSlice):
                self._tracker.wrote(done.result)
                self._count("create" if isinstance(action, Create) else "update")
        if not outcome.failed:
            return None
        failed = outcome.failed[0]
        return WriteFailure(failed.action, failed.error)
