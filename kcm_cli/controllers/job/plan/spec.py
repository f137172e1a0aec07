"""The values of a Job's spec, with the API's defaults where a field is absent."""

import msgspec

from kcm_cli.api.batch import Job
from kcm_cli.controllers.job.plan import names


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
    return job.spec.completion_mode == names.INDEXED


def completion_mode(job: Job) -> str:
    """The completion mode, as metrics show it."""
    return names.INDEXED if is_indexed(job) else names.NON_INDEXED


def has_known_mode(job: Job) -> bool:
    return job.spec.completion_mode in (None, names.INDEXED, names.NON_INDEXED)


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
    by_policy = features.replacement and job.spec.pod_replacement_policy == names.REPLACE_FAILED
    return by_policy or job.spec.pod_failure_policy is not None


def other_manager(job: Job, features: Features) -> str | None:
    """spec.managedBy, if that is another controller; None otherwise."""
    manager = job.spec.managed_by
    return None if manager in (None, names.CONTROLLER_NAME) or not features.managed_by else manager
