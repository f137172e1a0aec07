"""The Job that a CronJob creates for one of its times.

upstream: pkg/controller/cronjob/utils.go#getJobFromTemplate2
"""

from datetime import datetime

import msgspec

from kcm_cli.api.batch import CRON_JOBS, JOBS, CronJob, CronJobStatus, Job, job_template_of
from kcm_cli.api.core import ObjectReference
from kcm_cli.controllers.cronjob.plan.schedule import job_name
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.machinery.zones import load_zone
from kcm_cli.planning.pod_template import controller_ref

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_for(cron_job: CronJob, time: datetime) -> Doc:
    """The document of the Job. Its annotation tells the time in the CronJob's zone."""
    template = job_template_of(cron_job)
    source = template.get("metadata")
    own = source if isinstance(source, dict) else {}
    shown = time.astimezone(load_zone(cron_job.spec.time_zone or "")).isoformat(timespec="seconds")
    metadata: Doc = {
        "name": job_name(cron_job, time),
        "namespace": cron_job.namespace,
        "annotations": {**(own.get("annotations") or {}), SCHEDULED_AT: shown.replace("+00:00", "Z")},
        "ownerReferences": [controller_ref(CRON_JOBS, cron_job)],
    }
    if own.get("labels"):
        metadata["labels"] = own["labels"]
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": template.get("spec") or {}}


def started(status: CronJobStatus, job: Job, time: datetime) -> CronJobStatus:
    """The status with this Job active."""
    meta = job.metadata
    entry = ObjectReference(
        kind=JOBS.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        api_version=JOBS.api_version,
        resource_version=meta.resource_version,
    )
    return msgspec.structs.replace(status, active=(*status.active, entry), last_schedule_time=format_time(time))
