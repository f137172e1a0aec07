"""Options of the job-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class JobConfig:
    concurrent_syncs: int = concurrency("Jobs", 5, "concurrent-job-syncs", "ConcurrentJobSyncs", minimum=1)
