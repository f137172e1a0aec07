"""replicationcontroller-controller: the ReplicaSet's older sister, on the same rules.

upstream: pkg/controller/replication
"""

from kcm_cli.api.core import REPLICATION_CONTROLLERS
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.controllers.replicationcontroller.plan import owner_of
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.deletion_ages import DeletionAges
from kcm_cli.engine.replicas import Observers, ReplicaController


def build(context: ControllerContext) -> Runnable:
    controller = ReplicaController(
        context,
        REPLICATION_CONTROLLERS,
        owner_of,
        queue="replicationmanager",
        reports_terminating=False,
        observers=Observers(chosen=DeletionAges(context.metrics).chosen),
    )
    return controller.worker(context.config(ReplicationControllerConfig).concurrent_syncs)
