"""A ReplicationController as the shared replica rules see it."""

from kcm_cli.api.core import REPLICATION_CONTROLLERS, ReplicationController
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
