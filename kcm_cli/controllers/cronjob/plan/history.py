"""Which finished Jobs go: those beyond the limits for successful and failed ones, the oldest first.

upstream: pkg/controller/cronjob/cronjob_controllerv2.go#cleanupFinishedJobs
"""

from collections.abc import Iterable

from kcm_cli.api.batch import CronJob, Job
from kcm_cli.planning.jobs import COMPLETE, FAILED, finished_condition


def superfluous(cron_job: CronJob, jobs: Iterable[Job]) -> list[Job]:
    """The Jobs to delete. Those that are being deleted count, but need no second deletion."""
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
    """All but the ``limit`` that started last; one that never started counts as the latest."""
    if limit is None or len(jobs) <= limit:
        return []
    jobs.sort(key=lambda job: (job.status.start_time is None, job.status.start_time or "", job.name))
    return jobs[: len(jobs) - limit]
