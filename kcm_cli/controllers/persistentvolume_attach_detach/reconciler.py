"""Reconciles volumes: attaches and detaches them until the actual state is the desired one.

Detaches come before attaches, so that the volume of a pod that moved is free before it is attached again. Operations
run in the background, and requeue the volume when they end.

upstream: pkg/controller/volume/attachdetach/reconciler/reconciler.go, pkg/volume/util/operationexecutor
"""

import logging
import math

from kcm_cli.api.core import NODES
from kcm_cli.controllers.persistentvolume_attach_detach import plan
from kcm_cli.controllers.persistentvolume_attach_detach.attacher import Attacher, AttachError
from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.operations import ATTACH, DETACH, Operations
from kcm_cli.controllers.persistentvolume_attach_detach.plan import Attach, Detach, NeededVolume, UnneededVolume
from kcm_cli.controllers.persistentvolume_attach_detach.states import Attached, Attachment, Wanted
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.planning.nodes import is_out_of_service, is_ready
from kcm_cli.planning.volumes.attachable import CSI, PLUGINS, SEPARATOR, AttachableVolume, plugin_of
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.tasks import Tasks

log = logging.getLogger(__name__)
SOURCE = "attachdetach-controller"
_DETACHING = {
    Detach.SAFELY: "attacherDetacher.DetachVolume started",
    Detach.TIMEOUT: (
        "attacherDetacher.DetachVolume started: this volume is not safe to detach, but maxWaitForUnmountDuration"
        " expired, force detaching"
    ),
    Detach.OUT_OF_SERVICE: ("attacherDetacher.DetachVolume started: node has out-of-service taint, force detaching"),
}
_USED = "Multi-Attach error: volume is already used by pods"
_ELSEWHERE = "Multi-Attach error: volume is already exclusively attached and can't be attached to another node"
GATHER_S = 0.1
"""The delay before a volume is attached, so that its Events are about all pods that need it on the node. Upstream
checks all volumes every 100 ms."""
MANY = 100
"""A volume of more nodes is checked once in GATHER_S: each of its pods and operations asks for a check of all nodes."""


class NotSafe(SyncError):
    """The node's status says that the volume is mounted."""


class Reconciler:
    """Keys are unique names of volumes. ``tasks`` runs the operations."""

    def __init__(
        self, context: ControllerContext, world: World, attacher: Attacher, metrics: AttachDetachMetrics, tasks: Tasks
    ) -> None:
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder_for(SOURCE)
        self._force_on_timeout = not context.config(AttachDetachConfig).disable_force_detach_on_timeout
        self._world, self._attacher, self._metrics, self._tasks = world, attacher, metrics, tasks
        self._desired, self._actual = world.desired, world.actual
        self._operations = Operations(context.clock)
        self._checked: dict[str, float] = {}
        """When volumes of many nodes were checked last, in monotonic seconds."""

    async def sync(self, name: str) -> float | None:
        """Detach a volume from the nodes that do not need it, and attach it to those that do. A node whose status
        cannot be written holds up no other one; its error is raised at the end."""
        left_s = self._wait_s(name)
        if left_s > 0:
            return left_s
        waits: list[float | None] = []
        failed: RequestError | None = None
        for node in self._actual.nodes_of(name):
            if self._desired.get(name, node) is None:
                try:
                    waits.append(await self._detach(name, node))
                except RequestError as error:
                    failed = failed or error
        for node in self._desired.nodes_of(name):
            wanted = self._desired.get(name, node)
            if wanted is not None:
                waits.append(self._attach(wanted))
        self._count(name)
        again_s = min((wait for wait in waits if wait is not None), default=None)
        if failed is None:
            return again_s
        if again_s is not None:  # sooner than the backoff of the failed node
            self._world.volumes.add_after(name, again_s)
        raise failed

    def _wait_s(self, name: str) -> float:
        """The seconds until a volume of many nodes may be checked again; 0 if it is checked now.

        A retry is not put off: its backoff would begin anew, as after a check without a failure.
        """
        if len(self._actual.nodes_of(name)) + len(self._desired.nodes_of(name)) <= MANY:
            self._checked.pop(name, None)
            return 0.0
        now = self._clock.monotonic()
        retried = self._world.volumes.num_requeues(name) > 0
        left_s = 0.0 if retried else self._checked.get(name, -math.inf) + GATHER_S - now
        if left_s <= 0:
            self._checked[name] = now
        return max(0.0, left_s)

    # -- detaching

    async def _detach(self, name: str, node: str) -> float | None:
        """Detach an unneeded volume from a node, or return the seconds until the next check."""
        found, at = self._actual.get(name), self._actual.attachment(name, node)
        if found is None or at is None:
            return None
        now = self._clock.monotonic()
        decision, requeue_after_s = plan.plan_detach(self._read_unneeded(found, node, at, now))
        if decision is not Detach.NO and at.detach_requested is None:
            at.detach_requested = now
        if decision not in (Detach.NO, Detach.WAIT) and await self._unreport(name, node):
            self._start_detach(found, node, decision)
        return requeue_after_s

    def _read_unneeded(self, found: Attached, node: str, at: Attachment, now: float) -> UnneededVolume:
        name, slot = found.name, _slot(found.volume, node)
        return UnneededVolume(
            known_plugin=self._serves(plugin_of(name)[0]),
            pending=self._operations.pending(name, slot),
            backoff_s=self._operations.wait_s(name, slot, DETACH),
            may_be_needed=self._world.may_be_needed(name, node),
            node=self._world.nodes.store.get(node),
            mounted=self._actual.in_use(name, node),
            waited_s=0.0 if at.detach_requested is None else now - at.detach_requested,
            force_on_timeout=self._force_on_timeout,
        )

    async def _unreport(self, name: str, node: str) -> bool:
        """Remove the volume from the node's status. False if the volume is needed there again."""
        self._actual.unreport(name, node)
        try:
            await self._world.statuses.sync(node)
        except RequestError as error:
            fields = {"node": KRef(node), "volumeName": name, "err": str(error)}
            text = "UpdateNodeStatusForNode failed while attempting to report volume as attached"
            log.error(text, extra={"fields": fields})
            self._report_again(name, node)
            raise
        if self._desired.get(name, node) is None:
            return self._actual.attachment(name, node) is not None
        self._report_again(name, node)
        return False

    def _report_again(self, name: str, node: str) -> None:
        at = self._actual.attachment(name, node)
        if at is not None and at.confirmed:
            self._actual.report(name, node)
            self._world.node_queue.add(node)

    def _start_detach(self, found: Attached, node: str, decision: Detach) -> None:
        slot = _slot(found.volume, node)
        fields: dict[str, object] = {"node": KRef(node), "volumeName": found.name}
        if decision is Detach.TIMEOUT:
            fields = {"duration": format_duration(plan.MAX_UNMOUNT_S), **fields}
        log.info(_DETACHING[decision], extra={"fields": fields})
        self._operations.start(found.name, slot, DETACH)
        self._tasks.start(f"detach {found.name}", self._detaching(found, node, slot, decision))

    async def _detaching(self, found: Attached, node: str, slot: str, decision: Detach) -> None:
        name, volume, failed = found.name, found.volume, True
        plugin = volume.full_plugin if volume is not None else plugin_of(name)[0]
        migrated = volume is not None and volume.migrated
        try:
            with self._metrics.operations.measured(plugin, DETACH, migrated=migrated):
                await self._verify(name, node, decision)
                if decision.forced:
                    self._metrics.forced(decision.value)
                await self._detach_from(name, volume, node)
            failed = False
            self._actual.detached(name, node)
        except (NotSafe, AttachError, RequestError) as error:
            self._actual.uncertain(name, volume, node)
            fields = {"volumeName": name, "node": KRef(node), "err": str(error)}
            log.error("DetachVolume.Detach failed", extra={"fields": fields})
        finally:
            self._operations.end(name, slot, failed=failed)
            self._world.volumes.add(name)

    async def _detach_from(self, name: str, volume: AttachableVolume | None, node: str) -> None:
        plugin, rest = plugin_of(name)
        if plugin in PLUGINS:
            await self._attacher.detach(*_source(name, volume), node)
        else:
            await self._world.flex.detach(plugin, rest, node)

    def _serves(self, plugin: str) -> bool:
        return plugin in PLUGINS or self._world.flex.attaches(plugin)

    async def _verify(self, name: str, node: str, decision: Detach) -> None:
        """Check the node on the API server, since the cache may be stale: whether it has unmounted the volume, or is
        still in the state because of which it is detached by force. Raises NotSafe."""
        live = await self._client.find(NODES, "", node)
        if live is None or name not in live.status.volumes_in_use:
            return
        excused = is_out_of_service(live) or (decision is Detach.TIMEOUT and not is_ready(live))
        if not (decision.forced and excused):
            raise NotSafe("volume is still in use by node, according to Node status")

    # -- attaching

    def _attach(self, wanted: Wanted) -> float | None:
        """Attach a needed volume to a node, or return the seconds until the next check."""
        decision, requeue_after_s = plan.plan_attach(self._read_needed(wanted))
        if decision in (Attach.MULTI_ATTACH_ERROR, Attach.START):
            now = self._clock.monotonic()
            wanted.since = now if wanted.since is None else wanted.since
            left_s = wanted.since + GATHER_S - now
            if left_s > 0:
                return left_s
        match decision:
            case Attach.ATTACHED:
                self._actual.keep(wanted.volume.unique_name, wanted.node)
            case Attach.MULTI_ATTACH_ERROR:
                self._emit_multi_attach(wanted)
            case Attach.START:
                self._start_attach(wanted)
        return requeue_after_s

    def _read_needed(self, wanted: Wanted) -> NeededVolume:
        name, slot = wanted.volume.unique_name, _slot(wanted.volume, wanted.node)
        at = self._actual.attachment(name, wanted.node)
        attached = at is not None and at.confirmed
        return NeededVolume(
            pending=self._operations.pending(name, slot),
            attached=attached,
            in_use_elsewhere=not wanted.volume.shared and not attached and bool(self._actual.confirmed_nodes(name)),
            backoff_s=self._operations.wait_s(name, slot, ATTACH),
        )

    def _emit_multi_attach(self, wanted: Wanted) -> None:
        if wanted.multi_attach_reported:
            return
        wanted.multi_attach_reported = True
        name = wanted.volume.unique_name
        nodes = self._actual.confirmed_nodes(name)
        users = self._desired.pods_on(name, (node for node in nodes if node != wanted.node))
        for notice in plan.attached_elsewhere(wanted.pods.values(), wanted.volume.name, users):
            self._recorder.emit(notice)
        fields = {"pods": [kobj(pod) for pod in users], "attachedTo": ",".join(nodes), "volume": name}
        log.info(_USED if users else _ELSEWHERE, extra={"fields": fields})

    def _start_attach(self, wanted: Wanted) -> None:
        name, slot = wanted.volume.unique_name, _slot(wanted.volume, wanted.node)
        pods = [kobj(pod) for pod in wanted.pods.values()]
        fields = {"volumeName": name, "nodeName": wanted.node, "scheduledPods": pods}
        log.info("attacherDetacher.AttachVolume started", extra={"fields": fields})
        self._operations.start(name, slot, ATTACH)
        self._tasks.start(f"attach {name}", self._attaching(wanted, slot))

    async def _attaching(self, wanted: Wanted, slot: str) -> None:
        volume, node, failed = wanted.volume, wanted.node, True
        name, pods = volume.unique_name, tuple(wanted.pods.values())
        try:
            with self._metrics.operations.measured(volume.full_plugin, ATTACH, migrated=volume.migrated):
                device = await self._attach_to(volume, node)
            failed = False
            self._actual.attached(name, volume, node, device)
            self._world.node_queue.add(node)
            for notice in plan.attached(pods, volume.name):
                self._recorder.emit(notice)
        except AttachError as error:
            self._actual.uncertain(name, volume, node)
            for notice in plan.not_attached(pods, volume.name, error):
                self._recorder.emit(notice)
            fields = {"volumeName": name, "node": KRef(node), "err": str(error)}
            log.error("AttachVolume.Attach failed", extra={"fields": fields})
        finally:
            self._operations.end(name, slot, failed=failed)
            self._world.volumes.add(name)

    async def _attach_to(self, volume: AttachableVolume, node: str) -> str:
        """Attach the volume; returns its device if the driver reports one."""
        if volume.options is not None:
            return await self._world.flex.attach(volume.plugin, volume.options, node)
        await self._attacher.attach(volume, node)
        return ""

    def _count(self, name: str) -> None:
        found = self._actual.get(name)
        nodes = self._desired.nodes_of(name)
        wanted = self._desired.get(name, nodes[0]) if nodes else None
        volume = wanted.volume if wanted is not None else found.volume if found is not None else None
        known = len(found.nodes) if found is not None and found.volume is not None else 0
        self._metrics.volume(name, volume.full_plugin if volume is not None else "", len(nodes), known)
        if found is None and not nodes:
            self._operations.drop(name)


def _slot(volume: AttachableVolume | None, node: str) -> str:
    """The node on which operations on a volume exclude each other; empty for the whole cluster."""
    return node if volume is None or volume.shared else ""


def _source(name: str, volume: AttachableVolume | None) -> tuple[str, str]:
    """(driver, handle) of a volume; empty if it has no driver. If only the name is known, they are parsed from it.

    Raises AttachError for an invalid name.
    """
    if volume is not None:
        return volume.driver, volume.handle
    plugin, rest = plugin_of(name)
    if plugin != CSI:
        return "", ""
    driver, _, handle = rest.partition(SEPARATOR)
    if not handle or SEPARATOR in handle:
        raise AttachError("volumeName missing expected data")
    return driver, handle
