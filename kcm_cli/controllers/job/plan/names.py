"""Names and constants of the Job controller: labels, annotations, reasons, delays."""

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
COMPLETION_INDEX_ENV = "JOB_COMPLETION_INDEX"
CONTROLLER_NAME = "kubernetes.io/job-controller"

INDEXED = "Indexed"
NON_INDEXED = "NonIndexed"
REPLACE_FAILED = "Failed"

SUSPENDED = "Suspended"
FAILURE_TARGET = "FailureTarget"
SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"

BACKOFF_LIMIT_EXCEEDED = "BackoffLimitExceeded"
DEADLINE_EXCEEDED = "DeadlineExceeded"
MAX_FAILED_INDEXES_EXCEEDED = "MaxFailedIndexesExceeded"
FAILED_INDEXES = "FailedIndexes"
POD_FAILURE_POLICY = "PodFailurePolicy"
SUCCESS_POLICY = "SuccessPolicy"
COMPLETIONS_REACHED = "CompletionsReached"

IGNORE = "Ignore"
COUNT = "Count"
FAIL_JOB = "FailJob"
FAIL_INDEX = "FailIndex"

MAX_UNCOUNTED = 500
"""So many uids at most in status.uncountedTerminatedPods, and so many finalizers removed in one sync."""

MAX_PODS_PER_SYNC = 500
"""So many pods are created, or deleted as surplus, in one sync at most."""

BATCH_PERIOD_S = 1.0
"""Pod events of one Job within this time cause one sync."""

SUSPENDED_GRACE_S = 0.1
"""A Job that is made suspended is looked at so much later: who made it may want to change it at once."""

POD_BACKOFF_S = 10.0
MAX_POD_BACKOFF_S = 600.0
"""When a failed pod is replaced: so long after the first failure, doubled with each further one, up to the second."""

API_BACKOFF_S = 1.0
MAX_API_BACKOFF_S = 60.0
