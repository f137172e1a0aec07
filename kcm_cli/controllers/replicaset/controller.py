"""replicaset-controller: keeps the pods of each ReplicaSet at spec.replicas.

upstream: pkg/controller/replicaset
"""

from kcm_cli.api.apps import REPLICA_SETS, ReplicaSet
from kcm_cli.api.core import PODS, Pod
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.controllers.shared.replicas import DeletionAges, Observers, ReplicaController
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Owns, Queue, Watch, own_key
from kcm_cli.engine.own_writes import stale_sync_skips
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.replicas import ReplicaOwner
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller


def owner_of(replica_set: ReplicaSet) -> ReplicaOwner:
    """Raises ValueError for a selector that cannot be used."""
    spec = replica_set.spec
    return ReplicaOwner(
        resource=REPLICA_SETS,
        obj=replica_set,
        selector=selector_of(replica_set),
        replicas=1 if spec.replicas is None else spec.replicas,
        min_ready_s=spec.min_ready_seconds,
        template=spec.template,
        status=replica_set.status,
    )


def selector_of(replica_set: ReplicaSet) -> Selector:
    """Raises FormatError for one that cannot be used."""
    return from_label_selector(replica_set.spec.selector)


class ReplicaSetMetrics:
    """replicaset_controller_*."""

    def __init__(self, registry: Registry) -> None:
        self.skipped = stale_sync_skips(registry, "replicaset", "ReplicaSet")
        self.chosen = DeletionAges(registry).chosen


def make(context: ControllerContext) -> ReplicaController[ReplicaSet]:
    """The controller behind ReplicaSets."""
    replica_sets, pods = context.cache(REPLICA_SETS).store, context.cache(PODS).store
    replica_sets.add_index(CONTROLLER_UID, by_controller)

    def related(replica_set: ReplicaSet) -> list[Pod]:
        """The pods of all ReplicaSets of the same Deployment: surplus pods are taken from crowded nodes."""
        ref = controller_of(replica_set)
        if ref is None:
            return []
        siblings = replica_sets.by_index(CONTROLLER_UID, ref.uid)
        return [pod for sibling in siblings for pod in pods.by_index(CONTROLLER_UID, sibling.uid)]

    metrics = ReplicaSetMetrics(context.metrics)
    return ReplicaController(
        context,
        REPLICA_SETS,
        owner_of,
        reports_terminating=context.gates.enabled("DeploymentReplicaSetTerminatingReplicas"),
        related=related,
        observers=Observers(metrics.skipped, metrics.chosen),
    )


CONTROLLER = Controller(
    make,
    Queue(
        "replicaset",
        Watch(REPLICA_SETS, own_key, deleted=ReplicaController.deleted),
        owns=(Owns(PODS, selector=selector_of, updated=ReplicaController.pod_updated),),
        sync=ReplicaController.sync,
        workers=lambda context: context.config(ReplicaSetConfig).concurrent_syncs,
        writes=(REPLICA_SETS, PODS),
        stale_gate="StaleControllerConsistencyReplicaSet",
        skipped=ReplicaController.skipped,
    ),
)
