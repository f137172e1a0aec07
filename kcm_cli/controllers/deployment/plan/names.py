"""The annotations, labels and reasons of Deployments."""

from kcm_cli.api.well_known import LAST_APPLIED

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
