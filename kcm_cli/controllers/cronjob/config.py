"""Options of the cronjob-controller."""

from dataclasses import dataclass
from typing import ClassVar

from kcm_cli.component.kinds import INT32
from kcm_cli.component.options import option


@dataclass(frozen=True, slots=True)
class CronJobConfig:
    """Options of the cronjob controller."""

    SECTION: ClassVar[str] = "Cronjob-controller"
    KEY: ClassVar[str] = "CronJobController"

    concurrent_syncs: int = option(
        INT32,
        5,
        flag="concurrent-cron-job-syncs",
        key="ConcurrentCronJobSyncs",
        minimum=1,
        help=(
            "How many CronJobs are worked on at the same time. More makes the controller quicker to respond "
            "and uses more CPU and network."
        ),
    )
