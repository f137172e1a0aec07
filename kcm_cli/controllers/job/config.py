"""Options of the job-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class JobConfig:
    """Options of the job controller."""

    concurrent_syncs: int = concurrency("Jobs", 5, flag="concurrent-job-syncs", key="ConcurrentJobSyncs", minimum=1)
