from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.batch import CRON_JOBS, CronJob
from kcm_cli.controllers.cronjob.plan.schedule import (
    ImpossibleSchedule,
    Missed,
    Recent,
    latest,
    most_recent,
    until_next_s,
)
from kcm_cli.machinery import codec
from kcm_cli.machinery.cron import Calendar, Schedule, parse
from kcm_cli.machinery.zones import load_zone

MakeCronJob = Callable[..., CronJob]


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-01-{text}+00:00")


def recent(cron_job: CronJob, now: datetime, *, deadline: bool = True) -> Recent:
    schedule = parse(cron_job.spec.schedule)
    last = cron_job.status.last_schedule_time
    return most_recent(cron_job, schedule, now, last=last, local=UTC, deadline=deadline)


@pytest.mark.parametrize(
    ("schedule", "last", "now", "expected", "missed"),
    [
        pytest.param("0 * * * *", None, "01T00:30:00", None, Missed.NONE, id="not due since creation"),
        pytest.param("0 * * * *", None, "01T01:00:00", "01T01:00:00", Missed.NONE, id="just due"),
        pytest.param("0 * * * *", "01T01:00:00", "01T01:30:00", None, Missed.NONE, id="not due since the last run"),
        pytest.param("0 * * * *", "01T01:00:00", "01T02:10:00", "01T02:00:00", Missed.NONE, id="one passed"),
        pytest.param("0 * * * *", "01T01:00:00", "01T05:10:00", "01T05:00:00", Missed.FEW, id="several passed"),
        pytest.param("0 * * * *", "01T01:00:00", "06T05:10:00", "06T05:00:00", Missed.MANY, id="more than a hundred"),
        pytest.param("@every 7m", "01T00:00:00", "01T01:00:00", "01T00:56:00", Missed.FEW, id="every"),
        pytest.param("30 6-16/4 * * 1-5", "01T06:30:00", "05T07:00:00", "05T06:30:00", Missed.FEW, id="weekdays"),
        # upstream: pkg/controller/cronjob/utils.go#mostRecentScheduleTime
        pytest.param("* 8,9,10 * * *", "01T10:59:00", "05T07:00:00", None, Missed.MANY, id="irregular: not found"),
        pytest.param("* 8,9,10 * * *", "01T08:00:00", "01T09:30:00", "01T09:30:00", Missed.FEW, id="irregular: found"),
    ],
)
def test_latest_passed_time(
    schedule: str, last: str | None, now: str, expected: str | None, missed: Missed, make_cron_job: MakeCronJob
) -> None:
    cron_job = make_cron_job(schedule, last=None if last is None else f"2026-01-{last}Z")
    found = recent(cron_job, at(now))
    assert found.time == (None if expected is None else at(expected))
    assert found.missed is missed


@pytest.mark.parametrize(
    ("deadline_s", "expected"),
    [
        pytest.param(600, None, id="too late"),
        pytest.param(1800, "01T05:00:00", id="in time"),
        pytest.param(10**12, "01T05:00:00", id="for ever"),
        pytest.param(10**14, "01T05:00:00", id="beyond the limit of timedelta"),
        pytest.param(2**63 - 1, "01T05:00:00", id="the most there is"),
        pytest.param(-(2**63), None, id="negative"),
        pytest.param(0, None, id="at once or never"),
    ],
)
def test_times_past_the_deadline_are_left_out(
    deadline_s: int, expected: str | None, make_cron_job: MakeCronJob
) -> None:
    cron_job = make_cron_job(last="2026-01-01T01:00:00Z", startingDeadlineSeconds=deadline_s)
    assert recent(cron_job, at("01T05:20:00")).time == (None if expected is None else at(expected))


def test_without_deadline_nothing_is_left_out(make_cron_job: MakeCronJob) -> None:
    cron_job = make_cron_job(last="2026-01-01T01:00:00Z", startingDeadlineSeconds=1)
    assert recent(cron_job, at("01T05:20:00"), deadline=False).time == at("01T05:00:00")


def test_a_schedule_without_times(make_cron_job: MakeCronJob) -> None:
    with pytest.raises(ImpossibleSchedule, match="time difference between two schedules is less than 1 second"):
        recent(make_cron_job("0 0 31 2 *"), at("05T00:00:00"))


@pytest.mark.parametrize(
    ("schedule", "last", "now", "expected_s"),
    [
        pytest.param("0 * * * *", None, "01T00:30:00", 1800.1, id="first"),
        pytest.param("0 * * * *", "01T01:00:00", "01T01:00:00", 3600.1, id="just run"),
        pytest.param("0 * * * *", "01T01:00:00", "01T05:59:00", 60.1, id="behind several"),
        pytest.param("0 0 31 2 *", None, "05T00:00:00", 0, id="never"),
        pytest.param("* 8,9,10 * * *", "01T10:59:00", "05T07:00:00", 3600.1, id="latest one not found"),
    ],
)
def test_time_of_the_next_schedule(
    schedule: str, last: str | None, now: str, expected_s: float, make_cron_job: MakeCronJob
) -> None:
    cron_job = make_cron_job(schedule)
    text = None if last is None else f"2026-01-{last}Z"
    assert until_next_s(cron_job, parse(schedule), at(now), last=text, local=UTC) == pytest.approx(expected_s)


@given(st.sampled_from(("*/5 * * * *", "0 * * * *", "@every 3m", "@daily")), st.integers(0, 10**7))
def test_regular_schedules_miss_no_time(text: str, passed_s: int) -> None:
    doc = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"schedule": text}}
    cron_job, schedule = CRON_JOBS.decode(codec.encode(doc)), parse(text)
    now = at("01T00:00:00") + timedelta(seconds=passed_s)
    found = recent(cron_job, now).time
    upcoming = schedule.next(found or at("01T00:00:00"))
    assert upcoming is not None
    assert (found is None or found <= now) and upcoming > now
    assert until_next_s(cron_job, schedule, now, last=None, local=UTC) == pytest.approx(
        (upcoming - now).total_seconds() + 0.1
    )


GAPS = ("* * 1-15 * *", "*/7 * * * 1-6", "* 0-3 * * *", "30 0,1,2,23 * * *", "*/20 * 1-7 * 0", "15 0 * 2-11 *")
ZONES = ("UTC", "Europe/Berlin", "America/Sao_Paulo", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia")


def one_by_one(schedule: Schedule, start: datetime, now: datetime, local: tzinfo) -> datetime | None:
    found, candidate = None, schedule.next(start, local)
    while candidate is not None and candidate <= now:
        found, candidate = candidate, schedule.next(candidate, local)
    return found


@given(
    st.sampled_from((*GAPS, "@every 7m")),
    st.sampled_from(ZONES),
    st.datetimes(datetime(2010, 1, 1), datetime(2019, 1, 1), timezones=st.just(UTC)),
    st.integers(0, 3 * 86400),
)
def test_the_latest_time_is_that_of_all_in_turn(text: str, zone: str, start: datetime, passed_s: int) -> None:
    schedule, now, local = parse(text), start + timedelta(seconds=passed_s), load_zone(zone)
    assert latest(schedule, start, now, local) == one_by_one(schedule, start, now, local)


def test_many_times_behind_a_gap_are_not_gone_through(
    make_cron_job: MakeCronJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the 15 days that have passed since the gap, each minute is a time."""
    calls: list[datetime] = []
    real = Calendar.next

    def counted(calendar: Calendar, after: datetime, local: tzinfo = UTC) -> datetime | None:
        calls.append(after)
        return real(calendar, after, local)

    monkeypatch.setattr(Calendar, "next", counted)
    cron_job = make_cron_job("* * 1-15 * *", last="2026-01-15T23:58:00Z")
    now = datetime(2026, 2, 15, 23, 58, 30, tzinfo=UTC)
    assert recent(cron_job, now).time == now.replace(second=0)
    assert len(calls) < 50
