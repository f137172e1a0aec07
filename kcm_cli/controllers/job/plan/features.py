"""The gates that decide about a Job."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The gates that say something about one Job.

    forgets_start: suspending clears status.startTime (MutableSchedulingDirectivesForSuspendedJobs). managed_by:
    JobManagedBy. replacement: JobPodReplacementPolicy. The last two can be off in an emulated release only.
    """

    forgets_start: bool = True
    managed_by: bool = True
    replacement: bool = True

    @property
    def delays_end(self) -> bool:
        """Whether a Job is over only when none of its pods is terminating any more."""
        return self.managed_by or self.replacement


ALL = Features()
