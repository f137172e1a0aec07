"""The values of a Job's spec, with the API's defaults where a field is absent, and the controller's constants."""

import msgspec

from kcm_cli.api.batch import Job

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


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """The feature gates that apply to a Job.

    forgets_start: suspending a Job clears status.startTime (MutableSchedulingDirectivesForSuspendedJobs). managed_by:
    JobManagedBy. replacement: JobPodReplacementPolicy. The last two can be off in an emulated release only.
    """

    forgets_start: bool = True
    managed_by: bool = True
    replacement: bool = True

    @property
    def delays_end(self) -> bool:
        """Whether the final condition waits until no pod is terminating."""
        return self.managed_by or self.replacement


ALL = Features()


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == INDEXED


def completion_mode(job: Job) -> str:
    """The completion mode, as metrics show it."""
    return INDEXED if is_indexed(job) else NON_INDEXED


def has_known_mode(job: Job) -> bool:
    return job.spec.completion_mode in (None, INDEXED, NON_INDEXED)


def is_suspended(job: Job) -> bool:
    return job.spec.suspend is True


def counts_per_index(job: Job) -> bool:
    """Whether each index has a backoff limit of its own."""
    return job.spec.backoff_limit_per_index is not None


def backoff_limit(job: Job) -> int:
    return 6 if job.spec.backoff_limit is None else job.spec.backoff_limit


def parallelism(job: Job) -> int:
    return 1 if job.spec.parallelism is None else job.spec.parallelism


def completions(job: Job) -> int:
    """spec.completions of an Indexed Job, where it is required; 0 if it is absent."""
    return 0 if job.spec.completions is None else job.spec.completions


def replaces_only_failed(job: Job, features: Features) -> bool:
    """Whether a pod that is being deleted counts as failed, and is replaced, only when it has ended."""
    by_policy = features.replacement and job.spec.pod_replacement_policy == REPLACE_FAILED
    return by_policy or job.spec.pod_failure_policy is not None


def other_manager(job: Job, features: Features) -> str | None:
    """spec.managedBy, if that is another controller; None otherwise."""
    manager = job.spec.managed_by
    return None if manager in (None, CONTROLLER_NAME) or not features.managed_by else manager
