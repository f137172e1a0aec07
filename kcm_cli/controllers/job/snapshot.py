"""The snapshot of one Job, and the feature gates that apply to it."""

import msgspec

from kcm_cli.api.batch import Job
from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.backoff import FRESH, Backoff


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


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A Job, the pods that it controls, and its backoff record.

    satisfied: the cache shows all pods that earlier syncs created or deleted. pod_group: the PodGroup that new pods
    join.
    """

    job: Job
    pods: tuple[Pod, ...] = ()
    satisfied: bool = True
    backoff: Backoff = FRESH
    features: Features = ALL
    pod_group: str | None = None
