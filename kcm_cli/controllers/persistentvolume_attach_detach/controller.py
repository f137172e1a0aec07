"""persistentvolume-attach-detach-controller: attaches the volumes of pods to their nodes, and detaches them.

The desired state follows pods, claims, volumes and nodes. The actual state is read from nodes and VolumeAttachments at
the start, and updated by this controller's operations. Nodes without the annotation that requests it are left to their
kubelets.

upstream: pkg/controller/volume/attachdetach
"""

import logging

from kcm_cli.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
from kcm_cli.component.environment import Host
from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.controllers.persistentvolume_attach_detach import flex
from kcm_cli.controllers.persistentvolume_attach_detach.attacher import Attacher
from kcm_cli.controllers.persistentvolume_attach_detach.config import AttachDetachConfig
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.node_status import NodeStatuses
from kcm_cli.controllers.persistentvolume_attach_detach.reconciler import Reconciler
from kcm_cli.controllers.persistentvolume_attach_detach.verify import Verifier
from kcm_cli.controllers.persistentvolume_attach_detach.world import World
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Periodic, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled, until_synced
from kcm_cli.runtime.tasks import Tasks

log = logging.getLogger(__name__)
WORKERS = 10
PODS_S = 180.0
"""The pause between two comparisons with all pods."""


class AttachDetachController:
    """Builds the parts of the controller. ``run`` stops their operations at the end."""

    def __init__(self, context: ControllerContext) -> None:
        metrics = AttachDetachMetrics(context.metrics, context.clock)
        config = context.config(AttachDetachConfig)
        folder = context.config(VolumeConfig).flex_volume_plugin_dir
        self._tasks = Tasks(_crashed)
        self.world = World(context, metrics, "" if context.config(Host).simulated_nodes else folder)
        self.statuses = self.world.statuses
        self.attacher = Attacher(context.client, self.world.attachments)
        self.reconciler = Reconciler(context, self.world, self.attacher, metrics, self._tasks)
        self.verifier = Verifier(self.world, self.attacher, metrics)
        self.verify_s = 0.0 if config.disable_reconciler_sync else config.reconciler_sync_period_s

    async def prepare(self) -> None:
        """Read the state of the world once the caches have synced."""
        await until_synced(self.world.informers)
        await self.world.flex.scan()
        await self.world.populate()

    async def run(self) -> None:
        """Run until cancelled. Operations that are under way are left to the next leader."""
        await self._tasks.run()


def _crashed(name: str, error: BaseException) -> None:
    log.error("Operation ended unexpectedly", extra={"fields": {"task": name, "err": str(error)}}, exc_info=error)


CONTROLLER = Controller(
    AttachDetachController,
    (  # only the queue of claims has metrics: in place of the others, upstream has a loop over all volumes
        Queue(
            "attachable_volumes",
            watches=(
                Watch(PODS, changed=World.pod_changed, deleted=World.pod_deleted),
                Watch(NODES, changed=World.node_changed, deleted=World.node_deleted),
                Watch(VOLUME_ATTACHMENTS, Attacher.changed),
            ),
            sync=Reconciler.sync,
            workers=WORKERS,
            measured=False,
        ),
        Queue(
            "attached_volumes_of_nodes",
            Watch(NODES, changed=World.node_reported),
            sync=NodeStatuses.sync,
            workers=WORKERS,
            measured=False,
        ),
        Queue(
            "pvcs",
            Watch(PERSISTENT_VOLUME_CLAIMS, changed=World.claim_changed),
            watches=(Watch(PERSISTENT_VOLUMES, changed=World.claim_of),),
            sync=World.sync_claim,
            failures=unhandled('failed to sync pvc "{key}", will retry again: {error}'),
        ),
        Queue("csidrivers", Watch(CSI_DRIVERS, World.driver_changed), sync=World.sync_driver, measured=False),
    ),
    passes=(
        Periodic(
            lambda controller: controller.verifier.sweep(), pause_s=lambda controller: controller.verify_s, delayed=True
        ),
        Periodic(lambda controller: controller.world.read_pods(), pause_s=lambda controller: PODS_S, delayed=True),
        Periodic(lambda controller: controller.world.flex.scan(), pause_s=lambda controller: flex.SCAN_S, delayed=True),
    ),
    prepare=AttachDetachController.prepare,
    beside=lambda controller: (controller,),
    announces=starting("attach detach controller"),
)
