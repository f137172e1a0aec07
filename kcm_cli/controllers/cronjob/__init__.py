from kcm_cli.controllers.cronjob.config import CronJobConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="cronjob-controller",
    alias="cronjob",
    key="CronJobController",
    options=CronJobConfig,
    help_after="Job-controller",
    file_after="JobController",
    regular=True,
    ends_jobs=True,
)
