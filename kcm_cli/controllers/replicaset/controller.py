"""replicaset-controller: keeps the pods of each ReplicaSet at spec.replicas.

upstream: pkg/controller/replicaset
"""

import logging

from kcm_cli.api.apps import REPLICA_SETS, ReplicaSet
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.logs import V2
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.shared.availability import when_available
from kcm_cli.controllers.shared.replicas import ReplicaController
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Owns, Queue, Watch, own_key, starting
from kcm_cli.engine.dependents import selector_of
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.replicas import matters
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller, controlled_by

log = logging.getLogger(__name__)


class ReplicaSetController(ReplicaController[ReplicaSet]):
    """The controller of ReplicaSets."""

    def __init__(self, context: ControllerContext) -> None:
        terminating = context.gates.enabled("DeploymentReplicaSetTerminatingReplicas")
        super().__init__(context, REPLICA_SETS, selector_of, reports_terminating=terminating)
        self._owners.add_index(CONTROLLER_UID, by_controller)

    def related(self, obj: ReplicaSet) -> list[Pod]:
        """The pods of all ReplicaSets of the same Deployment, so that surplus pods are deleted from crowded nodes."""
        ref = controller_of(obj)
        if ref is None:
            return []
        siblings = controlled_by(self._owners, obj.namespace, ref.uid)
        if log.isEnabledFor(V2):
            fields = {"replicaSet": kobj(obj), "relatedReplicaSets": [kobj(sibling) for sibling in siblings]}
            log.log(V2, "Found related ReplicaSets", extra={"fields": fields})
        return [pod for sibling in siblings for pod in controlled_by(self._pods, obj.namespace, sibling.uid)]


CONTROLLER = Controller(
    ReplicaSetController,
    Queue(
        "replicaset",
        Watch(REPLICA_SETS, own_key, deleted=ReplicaController.deleted),
        owns=(Owns(PODS, updated=when_available(), matters=matters),),
        sync=ReplicaController.sync,
        failures=unhandled('sync "{key}" failed with {error}'),
        workers=ReplicaSetConfig,
        writes=(REPLICA_SETS, PODS),
        stale_gate="StaleControllerConsistencyReplicaSet",
    ),
    announces=starting("controller", name="replicaset"),
)
