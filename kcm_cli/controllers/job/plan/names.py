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
"""The maximum number of uids in status.uncountedTerminatedPods, and of finalizers that one sync removes."""

MAX_PODS_PER_SYNC = 500
"""The maximum number of pods that one sync creates, or deletes as surplus."""

BATCH_PERIOD_S = 1.0
"""Pod events of one Job within this time cause one sync."""

SUSPENDED_GRACE_S = 0.1
"""The delay before the first sync of a Job that was created suspended, since its creator may change it at once."""

POD_BACKOFF_S = 10.0
MAX_POD_BACKOFF_S = 600.0
"""The delay before a failed pod is replaced: the first after one failure, doubled with each one, the second at most."""

API_BACKOFF_S = 1.0
MAX_API_BACKOFF_S = 60.0
