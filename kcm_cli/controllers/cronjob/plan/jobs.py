"""The Jobs of a CronJob: the body of a new one, and the finished ones to delete.

upstream: pkg/controller/cronjob/utils.go#getJobFromTemplate2, cronjob_controllerv2.go#cleanupFinishedJobs
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from kcm_cli.api.batch import CRON_JOBS, JOBS, CronJob, Job, job_template_of
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.times import parse_time
from kcm_cli.machinery.zones import load_zone
from kcm_cli.planning.jobs import COMPLETE, FAILED, finished_condition
from kcm_cli.planning.pod_template import controller_ref

SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_LAST = 4_000_000_000
"""Minutes, in the year 9575."""
SKEW = timedelta(minutes=1)
"""The clock of the API server may be behind by so much."""


def job_name(cron_job: CronJob, time: datetime) -> str:
    """The name of a time's Job. Equal times have equal names, so that no time gets two Jobs."""
    return f"{cron_job.name}-{int(time.timestamp()) // 60}"


def time_of(cron_job: CronJob, job: Job) -> datetime | None:
    """The time whose Job this is; None for one that the controller has not made, as for one that was created before its
    time: whoever may create Jobs could have a time recorded as the last one that is yet to come."""
    own_name, _, text = job.name.rpartition("-")
    minutes = parse_int64(text)
    if own_name != cron_job.name or minutes is None or not 0 <= minutes < _LAST or SCHEDULED_AT not in job.annotations:
        return None
    time, created = datetime.fromtimestamp(minutes * 60, UTC), job.metadata.creation_timestamp
    return time if created is not None and time - parse_time(created) <= SKEW else None


def job_for(cron_job: CronJob, time: datetime) -> Doc:
    """The body of the Job. Its annotation has the time in the CronJob's zone."""
    template = job_template_of(cron_job)
    own = nested_map(template, "metadata")
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


def superfluous(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """The finished Jobs to delete. Jobs that are being deleted count towards the limits, and are not deleted again."""
    by_end: dict[str, list[Job]] = {COMPLETE: [], FAILED: []}
    for job in jobs:
        condition = finished_condition(job)
        if condition is not None:
            by_end[condition.type].append(job)
    spec = cron_job.spec
    successful = _oldest(by_end[COMPLETE], spec.successful_jobs_history_limit)
    failed = _oldest(by_end[FAILED], spec.failed_jobs_history_limit)
    return [job for job in (*successful, *failed) if not job.deleting]


def _oldest(jobs: list[Job], limit: int | None) -> list[Job]:
    """All Jobs but the ``limit`` that started last. A Job that never started counts as the latest."""
    if limit is None or len(jobs) <= limit:
        return []
    jobs.sort(key=lambda job: (job.status.start_time is None, job.status.start_time or "", job.name))
    return jobs[: len(jobs) - limit]
