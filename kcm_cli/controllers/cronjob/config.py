"""Options of the cronjob-controller."""

from kcm_cli.component.options import OptionGroup, concurrency


class CronJobConfig(OptionGroup):
    concurrent_syncs: int = concurrency("CronJobs", 5, "concurrent-cron-job-syncs", "ConcurrentCronJobSyncs", minimum=1)
