"""replicationcontroller-controller: the ReplicaSet's older sister, on the same rules.

upstream: pkg/controller/replication
"""

from kcm_cli.api.core import PODS, REPLICATION_CONTROLLERS, ReplicationController
from kcm_cli.controllers.replicationcontroller.config import ReplicationControllerConfig
from kcm_cli.controllers.shared.replicas import DeletionAges, Observers, ReplicaController
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Owns, Queue, Watch, own_key
from kcm_cli.machinery.labels import LabelSelector, Selector, from_label_selector
from kcm_cli.planning.replicas import ReplicaOwner


def owner_of(controller: ReplicationController) -> ReplicaOwner:
    spec = controller.spec
    return ReplicaOwner(
        resource=REPLICATION_CONTROLLERS,
        obj=controller,
        selector=selector_of(controller),
        replicas=1 if spec.replicas is None else spec.replicas,
        min_ready_s=spec.min_ready_seconds,
        template=spec.template or {},
        status=controller.status,
    )


def selector_of(controller: ReplicationController) -> Selector:
    """That of its labels; without one it selects nothing."""
    labels = controller.spec.selector
    return from_label_selector(LabelSelector(match_labels=labels) if labels else None)


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
