"""replicationcontroller-controller: keeps the pods of each ReplicationController at spec.replicas.

upstream: pkg/controller/replication
"""

from kcm_cli.api.core import PODS, REPLICATION_CONTROLLERS, ReplicationController
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.controllers.shared.availability import when_available
from kcm_cli.controllers.shared.replicas import ReplicaController
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Owns, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.labels import LabelSelector, Selector, from_label_selector
from kcm_cli.planning.replicas import matters


def selector_of(controller: ReplicationController) -> Selector:
    """The compiled selector; an absent one selects nothing."""
    labels = controller.spec.selector
    return from_label_selector(LabelSelector(match_labels=labels) if labels else None)


def make(context: ControllerContext) -> ReplicaController[ReplicationController]:
    """The controller of ReplicationControllers."""
    return ReplicaController(context, REPLICATION_CONTROLLERS, selector_of)


CONTROLLER = Controller(
    make,
    Queue(
        "replicationmanager",
        Watch(REPLICATION_CONTROLLERS, own_key, deleted=ReplicaController.deleted),
        owns=(Owns(PODS, selector=selector_of, updated=when_available(), matters=matters),),
        sync=ReplicaController.sync,
        failures=unhandled('sync "{key}" failed with {error}'),
        workers=ReplicationControllerConfig,
        writes=(REPLICATION_CONTROLLERS, PODS),
    ),
    announces=starting("controller", name="replicationcontroller"),
)
