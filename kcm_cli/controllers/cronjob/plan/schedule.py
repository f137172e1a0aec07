"""The times of a CronJob: missed ones, and the next one.

upstream: pkg/controller/cronjob/utils.go
"""

from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum

import msgspec

from kcm_cli.api.batch import CronJob
from kcm_cli.machinery.cron import Calendar, Schedule
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time, shifted
from kcm_cli.machinery.zones import load_zone

MANY = 100
"""More missed times than this are worth a warning."""

STEPS = 8
"""Behind a gap in a schedule, a month may have passed whose minutes are all times."""

PADDING_S = 0.1
"""A key comes back so long after its time, since clocks differ a little."""

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Missed(Enum):
    """The number of times that have passed since the last run."""

    NONE = "none"
    FEW = "few"
    MANY = "many"


class ImpossibleSchedule(ValueError):
    """The schedule is well-formed but has no times, such as February 31."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


class Recent(msgspec.Struct, frozen=True):
    """since: the last run, or the creation. time: the latest time that has passed; None if there is none, or if an
    irregular schedule hides it."""

    since: datetime
    time: datetime | None
    missed: Missed


def most_recent(
    cron_job: CronJob, schedule: Schedule, now: datetime, *, last: str | None, local: tzinfo, deadline: bool
) -> Recent:
    """The latest scheduled time up to now. Raises ImpossibleSchedule.

    last: the time of the last run. deadline: skip times that are too late to start (startingDeadlineSeconds). If
    several times have passed, the latest is extrapolated from the first interval, so that years of missed times cost no
    more than two.
    """
    since = _since(cron_job, now, last, deadline=deadline)
    first = schedule.next(since, local)
    second = None if first is None else schedule.next(first, local)
    if first is not None and now < first:
        return Recent(since, None, Missed.NONE)
    if first is not None and second is not None and now < second:
        return Recent(since, first, Missed.NONE)
    interval = None if first is None or second is None else second - first
    if first is None or interval is None or interval < _SECOND:
        raise ImpossibleSchedule
    passed = (now - first) // interval + 1
    # upstream: pkg/controller/cronjob/utils.go#mostRecentScheduleTime finds nothing where intervals differ much
    found = latest(schedule, first + interval * (passed - 2), now, local)
    return Recent(since, found, Missed.MANY if passed > MANY else Missed.FEW)


def latest(schedule: Schedule, start: datetime, now: datetime, local: tzinfo) -> datetime | None:
    """The latest time after ``start`` and up to now. Of a calendar, at most STEPS times are gone through."""
    found: datetime | None = None
    candidate = schedule.next(start, local)
    steps = 0
    while candidate is not None and candidate <= now:
        steps += 1
        found = _near(schedule, candidate, now, local) if steps > STEPS else candidate
        candidate = schedule.next(found, local)
    return found


def _near(schedule: Schedule, low: datetime, now: datetime, local: tzinfo) -> datetime:
    """A time at or after the time ``low``, less than a minute before the latest up to now. Found by bisection, which an
    interval does not permit: its times depend on where they start."""
    high = now
    while isinstance(schedule, Calendar) and high - low > _MINUTE:
        middle = low + (high - low) / 2
        probe = schedule.next(middle, local)
        if probe is not None and probe <= now:
            low = probe
        else:
            high = middle
    return low


def until_next_s(cron_job: CronJob, schedule: Schedule, now: datetime, *, last: str | None, local: tzinfo) -> float:
    """Seconds until the key is requeued for its next time; 0 if that is due, or if there is none."""
    try:
        recent = most_recent(cron_job, schedule, now, last=last, local=local, deadline=False)
    except ImpossibleSchedule:
        start = now
    else:
        start = recent.time or (recent.since if recent.missed is Missed.NONE else now)
    upcoming = schedule.next(start, local)
    return 0.0 if upcoming is None else max(0.0, (upcoming - now).total_seconds() + PADDING_S)


def _since(cron_job: CronJob, now: datetime, last: str | None, *, deadline: bool) -> datetime:
    text = last or cron_job.metadata.creation_timestamp
    since = _EPOCH if text is None else parse_time(text)
    seconds = cron_job.spec.starting_deadline_seconds
    if deadline and seconds is not None:
        since = max(since, _EPOCH, shifted(now, -seconds))
    return since


def schedule_text(cron_job: CronJob) -> str:
    """The schedule with its time zone in front, unless it contains one or the zone is unknown."""
    schedule, zone = cron_job.spec.schedule, cron_job.spec.time_zone
    if "TZ" in schedule or zone is None:
        return schedule
    try:
        load_zone(zone)
    except FormatError:
        return schedule
    return f"TZ={zone} {schedule}"
