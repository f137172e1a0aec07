"""Options of the cronjob-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class CronJobConfig:
    concurrent_syncs: int = concurrency("CronJobs", 5, "concurrent-cron-job-syncs", "ConcurrentCronJobSyncs", minimum=1)
