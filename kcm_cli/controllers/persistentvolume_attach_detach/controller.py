"""persistentvolume-attach-detach-controller: attaches the volumes of pods to their nodes, and detaches them again.

The desired state follows pods, claims, volumes and nodes; the actual one is read from nodes and VolumeAttachments at
the start and kept by what this controller does. Nodes that do not ask for it are left alone.

upstream: pkg/controller/volume/attachdetach
"""

import logging

from kcm_cli.controllers.persistentvolume_attach_detach import flex
from kcm_cli.controllers.persistentvolume_attach_detach.attacher import Attacher
from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.reconciler import Parts, Reconciler
from kcm_cli.controllers.persistentvolume_attach_detach.verify import Verifier
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.controllers.persistentvolume_binder.config import PersistentVolumeBinderConfig
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import Together, every
from kcm_cli.engine.worker import until_synced
from kcm_cli.runtime.tasks import Tasks

log = logging.getLogger(__name__)
SOURCE = "attachdetach-controller"
WORKERS = 10


def build(context: ControllerContext) -> Runnable:
    return AttachDetachController(context)


class AttachDetachController:
    """Runs the parts once the state of the world is known."""

    def __init__(self, context: ControllerContext) -> None:
        metrics = AttachDetachMetrics(context.metrics)
        config = context.config(AttachDetachConfig)
        folder = context.config(PersistentVolumeBinderConfig).flex_volume_plugin_dir
        self._world = World(context, metrics, "" if context.simulated else folder)
        self._tasks = Tasks(_crashed)
        attacher = Attacher(context.client, self._world.attachments)
        reconciler = Reconciler(_parts(context, self._world, attacher, metrics, config), self._tasks)
        parts: list[Runnable] = [
            context.worker(self._world.volumes, reconciler.sync, count=WORKERS, waits_for=()),
            context.worker(self._world.node_queue, self._world.statuses.sync, count=WORKERS, waits_for=()),
            context.worker(self._world.claims, self._world.sync_claim, count=1, waits_for=()),
            context.worker(self._world.drivers, self._world.sync_driver, count=1, waits_for=()),
        ]
        if not config.disable_reconciler_sync:
            verifier = Verifier(self._world, attacher, metrics, context.clock)
            parts.append(every(config.reconciler_sync_period_s, verifier.sweep, context))
        parts.append(every(flex.SCAN_S, self._world.flex.scan, context))
        self._running = Together(tuple(parts))
        self._world.listen()

    async def run(self) -> None:
        """Until cancelled; attaches and detaches under way are left to who comes next."""
        await until_synced(self._world.informers)
        await self._world.flex.scan()
        await self._world.populate()
        try:
            await self._running.run()
        finally:
            await self._tasks.stop()


def _parts(
    context: ControllerContext,
    world: World,
    attacher: Attacher,
    metrics: AttachDetachMetrics,
    config: AttachDetachConfig,
) -> Parts:
    return Parts(
        client=context.client,
        clock=context.clock,
        recorder=context.recorder_for(SOURCE),
        nodes=world.nodes.store,
        desired=world.desired,
        actual=world.actual,
        may_be_needed=world.may_be_needed,
        attacher=attacher,
        flex=world.flex,
        statuses=world.statuses,
        metrics=metrics,
        volumes=world.volumes,
        node_queue=world.node_queue,
        forces=not config.disable_force_detach_on_timeout,
    )


def _crashed(name: str, error: BaseException) -> None:
    log.error("Operation ended unexpectedly", extra={"fields": {"task": name, "err": str(error)}}, exc_info=error)
