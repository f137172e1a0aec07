"""The values of a Deployment's spec, in pods and seconds, and the names that it shares with its ReplicaSets."""

from collections.abc import Callable

from kcm_cli.api.apps import Deployment
from kcm_cli.api.well_known import LAST_APPLIED
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.integers import int32
from kcm_cli.planning import rollout
from kcm_cli.planning.pod_template import labels_of
from kcm_cli.planning.replicas import replicas_of
from kcm_cli.planning.template_form import meaning_as

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
ROLLBACK_TO = "deprecated.deployment.rollback.to"
HASH_LABEL = "pod-template-hash"

NOT_COPIED = frozenset({LAST_APPLIED, REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO})
"""Annotations that a Deployment and its ReplicaSets do not share."""

PROGRESSING = "Progressing"
AVAILABLE = "Available"
REPLICA_FAILURE = "ReplicaFailure"

NEW_REPLICA_SET = "NewReplicaSetCreated"
FOUND_REPLICA_SET = "FoundNewReplicaSet"
REPLICA_SET_UPDATED = "ReplicaSetUpdated"
REPLICA_SET_AVAILABLE = "NewReplicaSetAvailable"
CREATE_ERROR = "ReplicaSetCreateError"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED = "DeploymentPaused"
RESUMED = "DeploymentResumed"
MINIMUM_AVAILABLE = "MinimumReplicasAvailable"
MINIMUM_UNAVAILABLE = "MinimumReplicasUnavailable"

RECREATE = "Recreate"
ROLLING_UPDATE = "RollingUpdate"

MAX_INT32 = 2**31 - 1
HISTORY_LIMIT = 2000
"""Characters of the revision-history annotation."""


def rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == ROLLING_UPDATE


def fenceposts(deployment: Deployment) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) in pods. If both round to zero, one pod may be unavailable. upstream:
    ResolveFenceposts."""
    update = deployment.spec.strategy.rolling_update
    surge = update.max_surge if update is not None else None
    unavailable = update.max_unavailable if update is not None else None
    return rollout.fenceposts(surge, unavailable, replicas_of(deployment))


def max_surge(deployment: Deployment) -> int:
    """The number of pods above the wanted ones during a rollout."""
    return fenceposts(deployment)[0] if rolling(deployment) else 0


def most_pods(deployment: Deployment) -> int:
    """The maximum number of pods during a rollout. Beyond 32 bits the sum wraps to a negative number, as upstream."""
    return int32(replicas_of(deployment) + max_surge(deployment))


def max_unavailable(deployment: Deployment) -> int:
    """The number of wanted pods that may be missing during a rollout."""
    desired = replicas_of(deployment)
    if not rolling(deployment) or desired == 0:
        return 0
    return min(desired, fenceposts(deployment)[1])


def deadline_s(deployment: Deployment) -> int | None:
    """progressDeadlineSeconds; None if there is no deadline."""
    seconds = deployment.spec.progress_deadline_seconds
    return None if seconds is None or seconds == MAX_INT32 else seconds


def history_limit(deployment: Deployment) -> int | None:
    limit = deployment.spec.revision_history_limit
    return None if limit is None or limit == MAX_INT32 else limit


def without_hash(template: Doc) -> Doc:
    """The template without the label pod-template-hash. Unchanged parts are shared."""
    labels = labels_of(template)
    if HASH_LABEL not in labels:
        return template
    metadata = {field: value for field, value in nested_map(template, "metadata").items() if field != "labels"}
    if rest := {key: value for key, value in labels.items() if key != HASH_LABEL}:
        metadata["labels"] = rest
    return {**template, "metadata": metadata}


def with_hash(template: Doc, value: str) -> Doc:
    """The template with the label pod-template-hash."""
    labels = {**labels_of(template), HASH_LABEL: value}
    return {**template, "metadata": {**nested_map(template, "metadata"), "labels": labels}}


def same_template(left: Doc, right: Doc) -> bool:
    """Whether two templates are semantically equal, apart from the label pod-template-hash."""
    return templates_as(left)(right)


def templates_as(template: Doc) -> Callable[[Doc], bool]:
    """A function that compares other templates with this one, like ``same_template``."""
    matches = meaning_as(without_hash(template))
    return lambda other: matches(without_hash(other))
