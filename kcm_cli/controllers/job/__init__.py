from kcm_cli.controllers.job.config import JobConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="job-controller", alias="job", options=JobConfig, ends_jobs=True)
