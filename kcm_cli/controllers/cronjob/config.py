"""Options of the cronjob-controller."""

from dataclasses import dataclass

from kcm_cli.component.options import concurrency


@dataclass(frozen=True)
class CronJobConfig:
    """Options of the cronjob controller."""

    concurrent_syncs: int = concurrency(
        "CronJobs", 5, flag="concurrent-cron-job-syncs", key="ConcurrentCronJobSyncs", minimum=1
    )
