"""endpointslice-mirroring-controller: EndpointSlices for Endpoints that somebody else writes.

Endpoints are mirrored while their Service exists and has no selector, and they do not ask to be left out; as soon
as that is no longer so, their slices go.

upstream: pkg/controller/endpointslicemirroring
"""

from kcm_cli.api.core import SERVICES, Service
from kcm_cli.api.discovery import ENDPOINT_SLICES, EndpointSlice
from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.controllers.endpointslice_mirroring.metrics import MirroringMetrics
from kcm_cli.controllers.endpointslice_mirroring.plan import MANAGER, decide, mirrorable, removal, stages
from kcm_cli.controllers.endpointslice_mirroring.snapshot import Snapshot
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.retry import RetryPolicy
from kcm_cli.engine.slice_tracker import SliceTracker
from kcm_cli.engine.slice_writes import SliceSyncError, SliceWrites
from kcm_cli.planning.actions import Plan
from kcm_cli.planning.endpoints.slices import SERVICE_INDEX, by_service, filed_under
from kcm_cli.rest.errors import namespace_terminating
from kcm_cli.runtime.workqueue import RetryLimiter

MAX_RETRIES = 15


def build(context: ControllerContext) -> Runnable:
    controller = MirroringController(context)
    return context.worker(
        controller.queue,
        controller.sync,
        count=context.config(EndpointSliceMirroringConfig).concurrent_syncs,
        waits_for=controller.informers,
        retry=RetryPolicy(MAX_RETRIES),
        own=controller.own,
    )


class MirroringController:
    """Keys are Endpoints, and so the Services of the same name."""

    def __init__(self, context: ControllerContext) -> None:
        config = context.config(EndpointSliceMirroringConfig)
        self._clock, self._recorder = context.clock, context.recorder
        self._limit = config.max_endpoints_per_subset
        self._metrics = MirroringMetrics(context.metrics, self._limit)
        self.queue = context.queue("endpoint_slice_mirroring", RetryLimiter(base_s=1.0, maximum_s=100.0))
        self._endpoints = context.informers.get(ENDPOINTS)
        self._slices = context.informers.get(ENDPOINT_SLICES)
        self._services = context.informers.get(SERVICES)
        self.informers = (self._endpoints, self._slices, self._services)
        self._slices.store.add_index(SERVICE_INDEX, by_service)
        self._endpoints.listen(
            on_add=self._endpoints_changed,
            on_update=self._endpoints_updated,
            on_delete=self._endpoints_changed,
            on_unknown_delete=lambda gone: self.queue.add(gone.key),
        )
        self._services.listen(
            on_add=self._service_changed,
            on_update=self._service_updated,
            on_delete=self._service_changed,
            on_unknown_delete=lambda gone: self.queue.add(gone.key),
        )
        batch_s = config.updates_batch_period_s
        self._tracker = SliceTracker(MANAGER, self._slices, lambda key: self.queue.add_after(key, batch_s))
        self.own = context.own_writes(self._slices)
        self._writes = SliceWrites(context.executor(), self._tracker, self._metrics.changed)

    async def sync(self, key: str) -> None:
        started = self._clock.monotonic()
        try:
            await self._sync(key)
        finally:
            self._metrics.took(self._clock.monotonic() - started)

    async def _sync(self, key: str) -> None:
        if self._endpoints.store.is_unseen(key) or self._services.store.is_unseen(key):
            return
        endpoints = self._endpoints.store.get(key)
        service = self._services.store.get(key)
        slices = tuple(self._slices.store.by_index(SERVICE_INDEX, filed_under(MANAGER, key)))
        wanted = service is not None and service.spec.selector is None
        if endpoints is None or not wanted or not mirrorable(endpoints):
            await self._remove(key, slices)
        else:
            await self._mirror(key, Snapshot(endpoints, slices, self._limit))

    async def _mirror(self, key: str, snapshot: Snapshot) -> None:
        """Bring the slices in order. Raises SliceSyncError."""
        decision = decide(snapshot)
        for notice in decision.notices:
            self._recorder.emit(notice)
        self._metrics.decided(key, decision)
        for slice_ in decision.changes.unchanged:
            self._tracker.follow(slice_)
        failure = await self._writes.run(key, Plan(stages(snapshot.endpoints, decision.changes)))
        if failure is not None and not namespace_terminating(failure.error):
            raise SliceSyncError([failure.text(f"Endpoints {key}")]) from failure.error

    async def _remove(self, key: str, slices: tuple[EndpointSlice, ...]) -> None:
        """Nothing is to be mirrored: delete what is. Raises SliceSyncError."""
        self._metrics.forget(key)
        failure = await self._writes.run(key, Plan(removal(slices)))
        self._tracker.forget(key)
        if failure is not None:
            raise SliceSyncError([failure.text(f"Endpoints {key}")]) from failure.error

    # -- events

    def _endpoints_changed(self, endpoints: Endpoints) -> None:
        if mirrorable(endpoints):
            self.queue.add(endpoints.key)

    def _endpoints_updated(self, old: Endpoints, new: Endpoints) -> None:
        if mirrorable(old) or mirrorable(new):
            self.queue.add(new.key)

    def _service_changed(self, service: Service) -> None:
        if service.spec.selector is None:
            self.queue.add(service.key)

    def _service_updated(self, old: Service, new: Service) -> None:
        if (old.spec.selector is None) != (new.spec.selector is None):
            self.queue.add(new.key)
