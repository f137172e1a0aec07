"""Options of the job-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class JobConfig(OptionGroup):
    concurrent_syncs: int = concurrency("Jobs", 5, "concurrent-job-syncs", "ConcurrentJobSyncs", minimum=1)
