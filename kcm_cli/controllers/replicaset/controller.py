"""replicaset-controller: keeps the pods of each ReplicaSet at spec.replicas.

upstream: pkg/controller/replicaset
"""

from kcm_cli.api.apps import REPLICA_SETS, ReplicaSet
from kcm_cli.api.core import PODS, Pod
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.replicaset.metrics import ReplicaSetMetrics
from kcm_cli.controllers.replicaset.plan import owner_of
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.replicas import Observers, ReplicaController
from kcm_cli.machinery.meta import controller_of
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller


def build(context: ControllerContext) -> Runnable:
    replica_sets = context.informers.get(REPLICA_SETS)
    replica_sets.store.add_index(CONTROLLER_UID, by_controller)
    pods = context.informers.get(PODS)

    def related(replica_set: ReplicaSet) -> list[Pod]:
        """The pods of all ReplicaSets of the same Deployment: surplus pods are taken from crowded nodes."""
        ref = controller_of(replica_set)
        if ref is None:
            return []
        siblings = replica_sets.store.by_index(CONTROLLER_UID, ref.uid)
        return [pod for sibling in siblings for pod in pods.store.by_index(CONTROLLER_UID, sibling.uid)]

    metrics = ReplicaSetMetrics(context.metrics)
    controller = ReplicaController(
        context,
        REPLICA_SETS,
        owner_of,
        queue="replicaset",
        reports_terminating=context.gates.enabled("DeploymentReplicaSetTerminatingReplicas"),
        gate="StaleControllerConsistencyReplicaSet",
        related=related,
        observers=Observers(metrics.skipped, metrics.chosen),
    )
    return controller.worker(context.config(ReplicaSetConfig).concurrent_syncs)
