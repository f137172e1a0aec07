"""What a Deployment's spec means in numbers."""

from collections.abc import Callable

from kcm_cli.api.apps import Deployment, ReplicaSet
from kcm_cli.controllers.deployment.plan import names
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.integers import int32
from kcm_cli.planning import rollout
from kcm_cli.planning.pod_template import labels_of
from kcm_cli.planning.template_form import meaning_as


def replicas_of(deployment: Deployment) -> int:
    replicas = deployment.spec.replicas
    return 1 if replicas is None else replicas


def size_of(replica_set: ReplicaSet) -> int:
    replicas = replica_set.spec.replicas
    return 1 if replicas is None else replicas


def rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == names.ROLLING_UPDATE


def fenceposts(deployment: Deployment) -> tuple[int, int]:
    """(max surge, max unavailable) in pods; if both round to zero one pod may be unavailable."""
    update = deployment.spec.strategy.rolling_update
    surge = update.max_surge if update is not None else None
    unavailable = update.max_unavailable if update is not None else None
    return rollout.fenceposts(surge, unavailable, replicas_of(deployment))


def max_surge(deployment: Deployment) -> int:
    return fenceposts(deployment)[0] if rolling(deployment) else 0


def most_pods(deployment: Deployment) -> int:
    """The pods that there may be during a rollout. A sum beyond 32 bits is negative, as upstream: there may be none."""
    return int32(replicas_of(deployment) + max_surge(deployment))


def max_unavailable(deployment: Deployment) -> int:
    desired = replicas_of(deployment)
    if not rolling(deployment) or desired == 0:
        return 0
    return min(desired, fenceposts(deployment)[1])


def deadline_s(deployment: Deployment) -> int | None:
    """Seconds within which a rollout must make progress; None if it may take for ever."""
    seconds = deployment.spec.progress_deadline_seconds
    return None if seconds is None or seconds == names.MAX_INT32 else seconds


def history_limit(deployment: Deployment) -> int | None:
    limit = deployment.spec.revision_history_limit
    return None if limit is None or limit == names.MAX_INT32 else limit


def without_hash(template: Doc) -> Doc:
    """The template without the label pod-template-hash; shares what it does not change."""
    labels = labels_of(template)
    if names.HASH_LABEL not in labels:
        return template
    metadata = {field: value for field, value in nested_map(template, "metadata").items() if field != "labels"}
    if rest := {key: value for key, value in labels.items() if key != names.HASH_LABEL}:
        metadata["labels"] = rest
    return {**template, "metadata": metadata}


def with_hash(template: Doc, value: str) -> Doc:
    """The template with the label pod-template-hash."""
    labels = {**labels_of(template), names.HASH_LABEL: value}
    return {**template, "metadata": {**nested_map(template, "metadata"), "labels": labels}}


def same_template(left: Doc, right: Doc) -> bool:
    """Whether two templates ask for the same pods, the hash label aside."""
    return templates_as(left)(right)


def templates_as(template: Doc) -> Callable[[Doc], bool]:
    """``same_template`` with one template, for several others."""
    matches = meaning_as(without_hash(template))
    return lambda other: matches(without_hash(other))
