"""The status of a CronJob from its Jobs: the active ones, and the time of the last success.

upstream: pkg/controller/cronjob/cronjob_controllerv2.go#syncCronJob, first half
"""

from collections.abc import Set
from datetime import UTC, datetime, tzinfo

import msgspec

from kcm_cli.api.batch import CRON_JOBS, JOBS, CronJob, CronJobStatus, Job
from kcm_cli.api.core import ObjectReference
from kcm_cli.controllers.cronjob.plan.jobs import time_of
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.jobs import finished_condition, is_complete, is_finished


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A CronJob and the Jobs that it controls.

    known: uids of Jobs that are in status.active on the API server, but not in the cache. deleted: uids in
    status.active of Jobs that are gone. local: the machine's time zone, for schedules without one.
    """

    cron_job: CronJob
    jobs: tuple[Job, ...] = ()
    known: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    local: tzinfo = UTC


def unlisted(snapshot: Snapshot) -> list[Job]:
    """Active Jobs that are not in status.active of the cached CronJob, which may be stale."""
    listed = _uids(snapshot.cron_job.status)
    return [job for job in snapshot.jobs if job.uid not in listed and not is_finished(job)]


def missing(snapshot: Snapshot) -> list[ObjectReference]:
    """Entries of status.active whose Job is not in the cache. The API server may have it."""
    children = {job.uid for job in snapshot.jobs}
    return [ref for ref in snapshot.cron_job.status.active if ref.uid not in children]


def status(snapshot: Snapshot, before: CronJobStatus) -> tuple[CronJobStatus, list[Notice]]:
    """The status without finished and deleted Jobs, and the Events to emit. A Job that a sync has created without being
    able to write the status is active; upstream reports it as unexpected until it creates it again."""
    ref = ref_to(CRON_JOBS, snapshot.cron_job)
    notices: list[Notice] = []
    new = before
    listed = _uids(new)
    gone: set[str] = set()
    for job in snapshot.jobs:
        condition = finished_condition(job)
        if condition is None:
            if job.uid in listed or job.uid in snapshot.known:
                continue
            time = time_of(snapshot.cron_job, job)
            if time is not None and _is_later(time, new):
                new = started(new, job, time)
            else:
                text = f"Saw a job that the controller did not create or forgot: {job.name}"
                notices.append(Notice(ref, "Warning", "UnexpectedJob", text))
            continue
        if job.uid in listed:
            gone.add(job.uid)
            text = f"Saw completed job: {job.name}, condition: {condition.type}"
            notices.append(Notice(ref, "Normal", "SawCompletedJob", text))
        if is_complete(job):
            new = _succeeded(new, job)
    for entry in new.active:
        if entry.uid in snapshot.deleted:
            gone.add(entry.uid)
            notices.append(Notice(ref, "Normal", "MissingJob", f"Active job went missing: {entry.name}"))
    return without(new, gone), notices


def _is_later(time: datetime, status: CronJobStatus) -> bool:
    return status.last_schedule_time is None or time > parse_time(status.last_schedule_time)


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


def without(status: CronJobStatus, uids: Set[str]) -> CronJobStatus:
    """The status without these Jobs in status.active."""
    if not uids:
        return status
    return msgspec.structs.replace(status, active=tuple(entry for entry in status.active if entry.uid not in uids))


def _succeeded(status: CronJobStatus, job: Job) -> CronJobStatus:
    """The status with the time of a later success, whether or not the Job was in status.active."""
    ended, known = job.status.completion_time, status.last_successful_time
    if ended is None or (known is not None and parse_time(ended) <= parse_time(known)):
        return status
    return msgspec.structs.replace(status, last_successful_time=ended)


def _uids(status: CronJobStatus) -> set[str]:
    return {entry.uid for entry in status.active}
