"""A ReplicaSet as the shared replica rules see it."""

from kcm_cli.api.apps import REPLICA_SETS, ReplicaSet
from kcm_cli.machinery.labels import Selector, from_label_selector
from kcm_cli.planning.replicas import ReplicaOwner


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
