"""Decides which Job to create.

upstream: pkg/controller/cronjob/cronjob_controllerv2.go#syncCronJob, second half
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from kcm_cli.api.batch import CRON_JOBS, CronJob, CronJobStatus
from kcm_cli.controllers.cronjob.plan.jobs import job_name
from kcm_cli.controllers.cronjob.plan.schedule import (
    ImpossibleSchedule,
    Missed,
    most_recent,
    schedule_text,
    until_next_s,
)
from kcm_cli.controllers.cronjob.plan.status import Snapshot
from kcm_cli.machinery.cron import Schedule, parse
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.kref import KRef
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import parse_time, span
from kcm_cli.machinery.zones import load_zone
from kcm_cli.planning.actions import Notice, Remark, ref_to

FORBID = "Forbid"
REPLACE = "Replace"
_REMARKS = {
    "InvalidSchedule": ("Invalid schedule", 2),
    "TooManyMissedTimes": ("too many missed times", 0),
    "UnparseableSchedule": ("Unparseable schedule", 2),
}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class NextRun(msgspec.Struct, frozen=True, kw_only=True):
    """start: the time whose Job is to be created now. again_s: seconds until the key is requeued. notices: Events to
    emit."""

    start: datetime | None = None
    again_s: float | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def remarks(self) -> Iterator[Remark]:
        """What upstream logs beside some of its Events."""
        for notice in self.notices:
            if notice.reason in _REMARKS:
                message, verbosity = _REMARKS[notice.reason]
                fields: dict[str, object] = {"cronjob": KRef(notice.ref.name, notice.ref.namespace)}
                if verbosity:
                    fields["err"] = notice.message
                yield Remark(message, fields, verbosity)


def plan(snapshot: Snapshot, status: CronJobStatus, now: datetime) -> NextRun:
    """Decide about the schedule. ``status``: the status after finished and deleted Jobs were removed."""
    cron_job = snapshot.cron_job
    if cron_job.deleting:
        return NextRun()
    notices: list[Notice] = []
    schedule = _readable(cron_job, notices)
    if schedule is None:
        return NextRun(notices=tuple(notices))
    again_s = until_next_s(cron_job, schedule, now, last=status.last_schedule_time, local=snapshot.local)
    try:
        time = _due(snapshot, schedule, status, now, notices)
    except ImpossibleSchedule as error:
        notices.append(_warning(cron_job, "InvalidSchedule", f"invalid schedule: {cron_job.spec.schedule} : {error}"))
        return NextRun(notices=tuple(notices))
    if time is None or not _may_start(cron_job, status, time, now, notices):
        return NextRun(again_s=again_s, notices=tuple(notices))
    return NextRun(start=time, again_s=again_s, notices=tuple(notices))


def _readable(cron_job: CronJob, notices: list[Notice]) -> Schedule | None:
    """The parsed schedule; None if the CronJob is suspended, or its schedule or time zone is invalid."""
    spec = cron_job.spec
    if spec.time_zone is not None:
        try:
            load_zone(spec.time_zone)
        except FormatError as error:
            text = f"invalid timeZone: {quote(spec.time_zone)}: {error}"
            notices.append(_warning(cron_job, "UnknownTimeZone", text))
            return None
    if spec.suspend:
        return None
    if "TZ" in spec.schedule:
        text = (
            f"CRON_TZ or TZ used in schedule {quote(spec.schedule)} is not officially supported, see "
            "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
        )
        notices.append(_warning(cron_job, "UnsupportedSchedule", text))
    try:
        return parse(schedule_text(cron_job))
    except FormatError as error:
        text = f"unparseable schedule: {quote(spec.schedule)} : {error}"
        notices.append(_warning(cron_job, "UnparseableSchedule", text))
        return None


def _due(
    snapshot: Snapshot, schedule: Schedule, status: CronJobStatus, now: datetime, notices: list[Notice]
) -> datetime | None:
    """The latest time that has passed since the last run. Raises ImpossibleSchedule."""
    cron_job = snapshot.cron_job
    last = status.last_schedule_time
    recent = most_recent(cron_job, schedule, now, last=last, local=snapshot.local, deadline=True)
    if recent.time is not None and recent.missed is Missed.MANY:
        text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        notices.append(_warning(cron_job, "TooManyMissedTimes", text))
    return recent.time


def _may_start(cron_job: CronJob, status: CronJobStatus, time: datetime, now: datetime, notices: list[Notice]) -> bool:
    deadline_s = cron_job.spec.starting_deadline_seconds
    if deadline_s is not None and now - time > span(deadline_s):
        text = f"Missed scheduled time to start a job: {_rfc1123(time)}"
        notices.append(_warning(cron_job, "MissSchedule", text))
        return False
    name, last = job_name(cron_job, time), status.last_schedule_time
    if any(entry.name == name and entry.namespace == cron_job.namespace for entry in status.active):
        return False
    if last is not None and parse_time(last) == time:
        return False
    if cron_job.spec.concurrency_policy == FORBID and status.active:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        notices.append(Notice(ref_to(CRON_JOBS, cron_job), "Normal", "JobAlreadyActive", text))
        return False
    return True


def _rfc1123(time: datetime) -> str:
    """``Mon, 02 Jan 2006 15:04:05 +0000``, in English whatever the locale."""
    weekday, month = _WEEKDAYS[time.weekday()], _MONTHS[time.month - 1]
    return f"{weekday}, {time:%d} {month} {time.year:04} {time:%H:%M:%S} +0000"


def _warning(cron_job: CronJob, reason: str, message: str) -> Notice:
    return Notice(ref_to(CRON_JOBS, cron_job), "Warning", reason, message)
