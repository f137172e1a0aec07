"""EndpointSlices: tracks and executes a controller's own writes, and sums up their totals.

A change of a slice requires a sync if its generation is higher than the written one; changes of labels and annotations
do not raise it. ``own_writes`` is not enough for that, since it compares resource versions: another client's change may
be seen before or after the controller's own.

upstream: staging/src/k8s.io/endpointslice/{reconciler.go#finalize,util/endpointslice_tracker.go}
"""

from collections.abc import Callable, Collection, Iterable

from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, SERVICE_NAME, EndpointSlice
from kcm_cli.component.metrics import Registry, Stability
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Keys, Watch
from kcm_cli.engine.execute import Executor
from kcm_cli.machinery.errors import SyncError, aggregated
from kcm_cli.planning.actions import Create, Delete, Failed, Plan, Update
from kcm_cli.planning.endpoints.slices import Efficiency
from kcm_cli.runtime.informer import Informer

_DELETED = -1
_READ = 0
"""Below each generation."""


class SliceTracker:
    """The generations of the slices that one controller has written or read, by Service and uid. ``manager``: the
    controller's name in their labels."""

    def __init__(self, manager: str, informer: Informer[EndpointSlice]) -> None:
        self._manager = manager
        self._informer = informer
        self._written: dict[str, dict[str, int]] = {}

    def wrote(self, slice_: EndpointSlice) -> None:
        """Record the answer to a creation or an update."""
        if self._holds(slice_.key, slice_.uid) or self._informer.progress.behind(slice_.version):
            self._written.setdefault(slice_.service_key, {})[slice_.uid] = slice_.metadata.generation

    def follow(self, slice_: EndpointSlice) -> None:
        """Record an unchanged slice, if it is not tracked yet."""
        self._written.setdefault(slice_.service_key, {}).setdefault(slice_.uid, slice_.metadata.generation)

    def read(self, slice_: EndpointSlice) -> None:
        """Record a slice that a sync relies on. If it is not tracked yet, each change and its deletion count as another
        client's."""
        self._written.setdefault(slice_.service_key, {}).setdefault(slice_.uid, _READ)

    def deleted(self, key: str, name: str, uid: str) -> None:
        """Record the deletion of a Service's slice. ``name``: its namespace/name."""
        if self._holds(name, uid):
            self._written.setdefault(key, {})[uid] = _DELETED

    def forget(self, key: str) -> None:
        """Stop tracking a Service."""
        self._written.pop(key, None)

    def _holds(self, name: str, uid: str) -> bool:
        held = self._informer.store.get(name)
        return held is not None and held.uid == uid

    # -- events: the Services of slices that another client changed

    def slice_added(self, slice_: EndpointSlice) -> Keys:
        return _service(slice_) if self._managed(slice_) and self._foreign_change(slice_) else ()

    def slice_updated(self, old: EndpointSlice, new: EndpointSlice) -> Keys:
        if old.labels.get(SERVICE_NAME) != new.labels.get(SERVICE_NAME):
            self._written.get(old.service_key, {}).pop(old.uid, None)
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
        return written is None or slice_.metadata.generation > written


def _service(slice_: EndpointSlice) -> tuple[str, ...]:
    return (slice_.service_key,) if slice_.service_key else ()


def slices(after: Callable[[ControllerContext], float]) -> Watch:
    """A watch of EndpointSlices, for a controller with a SliceTracker."""
    return Watch(
        ENDPOINT_SLICES,
        added=SliceTracker.slice_added,
        updated=SliceTracker.slice_updated,
        deleted=SliceTracker.slice_deleted,
        after=after,
    )


class SliceTotals:
    """The total of endpoints, of slices, and of the slices that would suffice, over all keys. Updated by each sync, and
    not shown before the first one. ``limit``: the maximum number of endpoints in a slice."""

    def __init__(self, registry: Registry, prefix: str, limit: int, stability: Stability = Stability.ALPHA) -> None:
        self._limit = limit
        self._gauges = tuple(
            registry.gauge(f"{prefix}{name}", text, stability=stability)
            for name, text in (
                ("endpoints_desired", "Number of desired endpoints."),
                ("num_endpoint_slices", "Number of EndpointSlices."),
                ("desired_endpoint_slices", "Number of EndpointSlices that would suffice if each were full."),
            )
        )
        self._totals: dict[str, tuple[int, int, int]] = {}
        self._sums = [0, 0, 0]

    def put(self, key: str, groups: Collection[Efficiency], *, least: int = 0) -> None:
        """Set the numbers of a key. ``least``: the number of slices that it needs even without endpoints."""
        ideal = sum(-(-group.endpoints // self._limit) for group in groups)
        totals = sum(group.endpoints for group in groups), sum(group.slices for group in groups), max(ideal, least)
        self._move(self._totals.get(key, (0, 0, 0)), totals)
        self._totals[key] = totals

    def forget(self, key: str) -> None:
        """Remove a key."""
        before = self._totals.pop(key, None)
        if before is not None:
            self._move(before, (0, 0, 0))

    def _move(self, before: tuple[int, int, int], after: tuple[int, int, int]) -> None:
        for index, gauge in enumerate(self._gauges):
            self._sums[index] += after[index] - before[index]
            gauge.labels().set(float(self._sums[index]))


class SliceSyncError(SyncError):
    """Slices could not be written, or endpoints could not be placed. Each reason is listed once."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__(aggregated(problems))


def failure_text(failed: Failed, owner: str) -> str:
    """``failed to update web-abc EndpointSlice for Service ns/web: …``. ``owner``: its kind and key."""
    match failed.action:
        case Update(obj=slice_):
            what = f"update {slice_.name}"
        case Delete(name=name):
            what = f"delete {name}"
        case _:
            what = "create"
    return f"failed to {what} EndpointSlice for {owner}: {failed.error}"


class SliceWrites:
    """Executes plans over slices. ``count`` is called with create, update or delete for each write."""

    def __init__(self, executor: Executor, tracker: SliceTracker, count: Callable[[str], None]) -> None:
        self._executor = executor
        self._tracker = tracker
        self._count = count

    async def run(self, key: str, plan: Plan) -> Failed | None:
        """Write the slices of a Service until a write fails. Returns that failure, or None."""
        outcome = await self._executor.run(plan)
        for done in outcome.done:
            action = done.action
            if isinstance(action, Delete):
                self._tracker.deleted(key, f"{action.namespace}/{action.name}", action.uid)
                self._count("delete")
            elif isinstance(done.result, EndpointSlice):
                self._tracker.wrote(done.result)
                self._count("create" if isinstance(action, Create) else "update")
        return outcome.failed[0] if outcome.failed else None
