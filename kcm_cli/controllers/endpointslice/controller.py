"""endpointslice-controller: keeps the EndpointSlices of each Service with a selector in line with its pods.

A sync reads the Service's pods and slices from the caches, plans for each address type, and writes. If a pod's node is
unknown, the sync fails after the writes, so that it is retried. Slices of Services without a selector, and those of
other managers, are left alone.

upstream: pkg/controller/endpointslice
"""

import logging

from msgspec.structs import replace

from kcm_cli.api.core import NODES, PODS, SERVICES, Node, Service
from kcm_cli.api.discovery import ENDPOINT_SLICES, IPV4, IPV6
from kcm_cli.component.logs import V2
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.controllers.endpointslice.metrics import SliceMetrics
from kcm_cli.controllers.endpointslice.plan import MANAGER, Slicing, plan, topology
from kcm_cli.controllers.endpointslice.plan.desired import Member, Snapshot, address_types, new_memo
from kcm_cli.controllers.endpointslice.zones import Zones
from kcm_cli.controllers.shared.pod_services import PodServices
from kcm_cli.controllers.shared.slices import SliceSyncError, SliceTracker, SliceWrites, failure_text, slices
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Queue, Watch, starting
from kcm_cli.engine.worker import Failures
from kcm_cli.planning.actions import Notice, Stage, ref_to
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.ports import PodPorts, Ports
from kcm_cli.planning.endpoints.slices import SERVICE_INDEX, by_service, deletion, filed_under
from kcm_cli.planning.endpoints.trigger_time import Seen, trigger_time
from kcm_cli.rest.errors import namespace_terminating
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

MAX_RETRIES = 15
MIN_CHANGE_DELAY_S = 1.0
"""After another client changed a slice: wait for more of the kind."""


class EndpointSliceController:
    """Keys are Services."""

    def __init__(self, context: ControllerContext) -> None:
        config = context.config(EndpointSliceConfig)
        self._recorder = context.recorder
        self._limit = config.max_endpoints_per_slice
        self._prefer_same = context.gates.enabled("PreferSameTrafficDistribution")
        self._metrics = SliceMetrics(context.metrics, self._limit)
        self._seen: dict[str, Seen] = {}
        self._memos: dict[str, dict[str, Memo[Member, PodPorts[Ports]]]] = {}
        self._services = context.cache(SERVICES)
        self._nodes = context.cache(NODES)
        self._slices = context.cache(ENDPOINT_SLICES)
        self._slices.store.add_index(SERVICE_INDEX, by_service)
        self.selected = PodServices(self._services, context.cache(PODS))
        self.tracker = SliceTracker(MANAGER, self._slices)
        self._writes = SliceWrites(context.executor(), self.tracker, self._metrics.changed)
        self.zones = Zones(self._nodes.store, context.queues[0])

    async def sync(self, key: str) -> None:
        service = self._services.store.get(key)
        if service is None:
            self._forget(key)
        elif service.spec.type == "ExternalName" or service.spec.selector is None:
            self._memos.pop(key, None)
            self.zones.keep(key, ())
        else:
            try:
                await self._reconcile(key, service)
            except SliceSyncError as error:
                self._metrics.synced("error")
                text = f"Error updating Endpoint Slices for Service {key}: {error}"
                self._recorder.emit(Notice(ref_to(SERVICES, service), "Warning", "FailedToUpdateEndpointSlices", text))
                raise
        self._metrics.synced("success")

    async def _reconcile(self, key: str, service: Service) -> None:
        """Reconcile each address type, and delete the slices of types that the Service does not have. Raises
        SliceSyncError with all errors."""
        await self.selected.prepare(service)
        types, snapshot = address_types(service), self._read(key, service)
        unsupported = [slice_ for slice_ in snapshot.slices if slice_.address_type not in types]
        for slice_ in unsupported:
            self.zones.forget(key, slice_.address_type)
        problems: list[str] = []
        memos = self._memos.setdefault(key, {})
        for address_type in {IPV4, IPV6}.difference(types):
            memos.pop(address_type, None)
            self._metrics.forget_type(key, address_type)
        self.zones.keep(key, types)
        for address_type in types:
            memo = memos.setdefault(address_type, new_memo())
            ratios = self.zones.ratios if topology.wants_hints(service.annotations) else None
            hinted = self.zones.hinted(key)
            problems += await self._reconcile_type(
                key, address_type, replace(snapshot, ratios=ratios, hinted=hinted, memo=memo)
            )
        for slice_ in unsupported:
            failure = await self._writes.run(key, (Stage((deletion(slice_),)),))
            if failure is not None:
                problems.append(f"error deleting {slice_.name} EndpointSlice for Service {key}: {failure.error}")
        if problems:
            raise SliceSyncError(problems)

    def _read(self, key: str, service: Service) -> Snapshot:
        """The snapshot for all address types. Slices that are being deleted, and those of other managers, are left
        out."""
        pods = tuple(self.selected.pods_of(service))
        time, self._seen[key] = trigger_time(self._seen.get(key), service, pods)
        found = self._slices.store.by_index(SERVICE_INDEX, filed_under(MANAGER, key))
        existing = tuple(slice_ for slice_ in found if not slice_.deleting)
        for slice_ in existing:
            self.tracker.read(slice_)
        return Snapshot(
            service,
            pods,
            self._nodes_of({pod.spec.node_name for pod in pods}),
            existing,
            self._limit,
            time,
            prefer_same=self._prefer_same,
        )

    async def _reconcile_type(self, key: str, address_type: str, shot: Snapshot) -> list[str]:
        """Plan one address type and write. Returns the errors, except those of a terminating namespace."""
        planned = plan(shot, address_type)
        self._note(key, address_type, planned)
        failure = await self._writes.run(key, planned.stages)
        for notice in planned.notices:
            _log_hints(key, address_type, notice)
            self._recorder.emit(notice)
        problems = list(planned.problems)
        if failure is None:
            self._metrics.written(planned)
        elif not namespace_terminating(failure.error):
            problems.append(failure_text(failure, f"Service {key}"))
        return problems

    def _note(self, key: str, address_type: str, planned: Slicing) -> None:
        self._metrics.planned(key, address_type, planned)
        if planned.zones is None:
            self.zones.forget(key, address_type, planned.unhinted)
        else:
            self.zones.note(key, address_type, planned.zones)

    def _nodes_of(self, names: set[str]) -> dict[str, Node]:
        """The existing nodes of these names. For a node that cannot be decoded, only the metadata is known."""
        found: dict[str, Node] = {}
        for name in names - {""}:
            node, unknown = self._nodes.store.get(name), self._nodes.store.unknown().get(name)
            if node is not None:
                found[name] = node
            elif unknown is not None:
                found[name] = Node(metadata=unknown.metadata)
        return found

    def skipped(self, group: str, resource: str) -> None:
        """A sync was deferred because the cache of this resource is stale."""
        self._metrics.synced("stale")

    def _forget(self, key: str) -> None:
        self._seen.pop(key, None)
        self._memos.pop(key, None)
        self._metrics.forget(key)
        self.tracker.forget(key)
        for address_type in (IPV4, IPV6):
            self.zones.forget(key, address_type)


def _batch_s(context: ControllerContext) -> float:
    return context.config(EndpointSliceConfig).updates_batch_period_s


def _log_hints(key: str, address_type: str, notice: Notice) -> None:
    """What upstream's topology cache logs about hints that are added or cannot be."""
    fields = {"key": key, "addressType": address_type}
    if notice.message.startswith(topology.ENABLED):
        log.info("Topology Aware Hints has been enabled, adding hints.", extra={"fields": fields})
    elif notice.message.startswith(topology.DISABLED):
        more = {"serviceKey": key, "addressType": address_type}
        log.info("TopologyAwareHints annotation has changed, removing hints", extra={"fields": more})
    elif topology.NO_HINTS in notice.message:
        log.log(V2, "No hints allocated for zones, removing them", extra={"fields": fields})
    elif topology.NO_ZONE in notice.message:
        log.info("Endpoint found without zone specified, removing hints", extra={"fields": fields})


CONTROLLER = Controller(
    EndpointSliceController,
    (
        Queue(
            "endpoint_slice",
            SERVICES,
            watches=(
                Watch(
                    PODS,
                    PodServices.services_of,
                    updated=PodServices.services_of_changed,
                    after=_batch_s,
                ),
                slices(lambda context: max(MIN_CHANGE_DELAY_S, _batch_s(context))),
            ),
            sync=EndpointSliceController.sync,
            failures=Failures(
                retried="Error syncing endpoint slices for service, retrying",
                level=logging.INFO,
                dropped="Retry budget exceeded, dropping service out of the queue",
                dropped_level=logging.INFO,
                key="key",
            ),
            workers=EndpointSliceConfig,
            retries=MAX_RETRIES,
            limiter=lambda context: RetryLimiter(base_s=1.0, maximum_s=1000.0),
            writes=(ENDPOINT_SLICES,),
            skipped=EndpointSliceController.skipped,
        ),
        Queue(
            "nodes",
            Watch(NODES, Zones.all_nodes, updated=Zones.all_if_moved),
            sync=Zones.sync,
            measured=False,
        ),
    ),
    announces=starting("endpoint slice controller"),
)
