"""replicationcontroller-controller: the ReplicaSet's older sister, on the same rules.

upstream: pkg/controller/replication
"""

from kcm_cli.api.core import PODS, REPLICATION_CONTROLLERS, ReplicationController
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.controllers.replicationcontroller.plan import owner_of, selector_of
from kcm_cli.controllers.shared.deletion_ages import DeletionAges
from kcm_cli.controllers.shared.replicas import Observers, ReplicaController
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Owns, Queue, Watch, own_key


def make(context: ControllerContext) -> ReplicaController[ReplicationController]:
    """The controller behind ReplicationControllers."""
    observers = Observers(chosen=DeletionAges(context.metrics).chosen)
    return ReplicaController(context, REPLICATION_CONTROLLERS, owner_of, reports_terminating=False, observers=observers)


CONTROLLER = Controller(
    make,
    Queue(
        "replicationmanager",
        Watch(REPLICATION_CONTROLLERS, own_key, deleted=ReplicaController.deleted),
        owns=(Owns(PODS, selector=selector_of, updated=ReplicaController.pod_updated),),
        sync=ReplicaController.sync,
        workers=lambda context: context.config(ReplicationControllerConfig).concurrent_syncs,
        writes=(REPLICATION_CONTROLLERS, PODS),
    ),
)
