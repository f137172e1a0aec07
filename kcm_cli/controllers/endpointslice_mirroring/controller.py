"""endpointslice-mirroring-controller: creates EndpointSlices for Endpoints that other clients write.

Endpoints are mirrored if their Service exists and has no selector, and if they do not opt out. Otherwise their slices
are deleted.

upstream: pkg/controller/endpointslicemirroring
"""

import logging

from kcm_cli.api.core import SERVICES, Service
from kcm_cli.api.discovery import ENDPOINT_SLICES, EndpointSlice
from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.controllers.endpointslice_mirroring.config import EndpointSliceMirroringConfig
from kcm_cli.controllers.endpointslice_mirroring.metrics import MirroringMetrics
from kcm_cli.controllers.endpointslice_mirroring.plan import MANAGER, Snapshot, mirrorable, plan, removal
from kcm_cli.controllers.shared.slices import SliceSyncError, SliceTracker, SliceWrites, failure_text, slices
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, only, own_key, starting
from kcm_cli.engine.worker import Failures
from kcm_cli.engine.writes import tell
from kcm_cli.planning.endpoints.slices import SERVICE_INDEX, by_service, filed_under
from kcm_cli.rest.errors import namespace_terminating
from kcm_cli.runtime.workqueue import RetryLimiter

MAX_RETRIES = 15


class MirroringController:
    """Keys are Endpoints, which have the same names as their Services."""

    def __init__(self, context: ControllerContext) -> None:
        config = context.config(EndpointSliceMirroringConfig)
        self._clock, self._recorder = context.clock, context.recorder
        self._limit = config.max_endpoints_per_subset
        self._metrics = MirroringMetrics(context.metrics, self._limit)
        self._endpoints = context.cache(ENDPOINTS)
        self._slices = context.cache(ENDPOINT_SLICES)
        self._services = context.cache(SERVICES)
        self._slices.store.add_index(SERVICE_INDEX, by_service)
        self.tracker = SliceTracker(MANAGER, self._slices)
        self._writes = SliceWrites(context.executor(), self.tracker, self._metrics.changed)

    async def sync(self, key: str) -> None:
        started = self._clock.monotonic()
        try:
            await self._sync(key)
        finally:
            self._metrics.took(self._clock.monotonic() - started)

    async def _sync(self, key: str) -> None:
        if self._endpoints.store.is_unseen(key) or self._services.store.is_unseen(key):
            return
        found = self._slices.store.by_index(SERVICE_INDEX, filed_under(MANAGER, key))
        slices = tuple(slice_ for slice_ in found if not slice_.deleting)  # those stay as long as they have finalizers
        snapshot = self._read(key, slices)
        if snapshot is None:
            await self._remove(key, slices)
        else:
            await self._mirror(key, snapshot)

    def _read(self, key: str, slices: tuple[EndpointSlice, ...]) -> Snapshot | None:
        """Endpoints and their slices; None if they are not to be mirrored."""
        endpoints, service = self._endpoints.store.get(key), self._services.store.get(key)
        if endpoints is None or service is None or service.spec.selector is not None or not mirrorable(endpoints):
            return None
        return Snapshot(endpoints, slices, self._limit)

    async def _mirror(self, key: str, snapshot: Snapshot) -> None:
        """Write the slices. Raises SliceSyncError."""
        planned = plan(snapshot)
        for remark in planned.remarks:
            tell(remark)
        for notice in planned.notices:
            self._recorder.emit(notice)
        self._metrics.planned(key, planned)
        for slice_ in planned.unchanged:
            self.tracker.follow(slice_)
        failure = await self._writes.run(key, planned.stages)
        if failure is not None and not namespace_terminating(failure.error):
            raise SliceSyncError([failure_text(failure, f"Endpoints {key}")]) from failure.error

    async def _remove(self, key: str, slices: tuple[EndpointSlice, ...]) -> None:
        """Delete all slices. Raises SliceSyncError."""
        self._metrics.forget(key)
        failure = await self._writes.run(key, removal(slices))
        self.tracker.forget(key)
        if failure is not None:
            raise SliceSyncError([failure_text(failure, f"Endpoints {key}")]) from failure.error


def mirrored_between(controller: MirroringController, old: Endpoints, new: Endpoints) -> Keys:
    """The key of Endpoints that are, or were, to be mirrored."""
    return (new.key,) if mirrorable(old) or mirrorable(new) else ()


def has_no_selector(service: Service) -> bool:
    """Whether other clients write the Endpoints of a Service."""
    return service.spec.selector is None


def selector_added_or_removed(controller: MirroringController, old: Service, new: Service) -> Keys:
    """The key of a Service whose selector was added or removed."""
    return (new.key,) if has_no_selector(old) != has_no_selector(new) else ()


CONTROLLER = Controller(
    MirroringController,
    Queue(
        "endpoint_slice_mirroring",
        Watch(ENDPOINTS, only(mirrorable), updated=mirrored_between, unknown_deleted=own_key),
        watches=(
            Watch(SERVICES, only(has_no_selector), updated=selector_added_or_removed, unknown_deleted=own_key),
            slices(
                lambda context: context.config(EndpointSliceMirroringConfig).updates_batch_period_s,
            ),
        ),
        sync=MirroringController.sync,
        failures=Failures(
            retried="Error mirroring EndpointSlices for Endpoints, retrying",
            level=logging.INFO,
            dropped="Retry budget exceeded, dropping Endpoints out of the queue",
            dropped_level=logging.INFO,
            key="key",
        ),
        workers=EndpointSliceMirroringConfig,
        retries=MAX_RETRIES,
        limiter=lambda context: RetryLimiter(base_s=1.0, maximum_s=100.0),
        writes=(ENDPOINT_SLICES,),
    ),
    announces=starting("EndpointSliceMirroring controller"),
)
