"""Schedules: syntax, errors, and next times."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.cron import Calendar, Every, parse
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.zones import instant, load_zone


def next_time(schedule: str, after: str) -> str | None:
    found = parse(schedule).next(datetime.fromisoformat(after))
    return None if found is None else found.isoformat()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        # The texts are those that a v1.36 API server gives for each of these.
        ("", "empty spec string"),
        ("*", "expected exactly 5 fields, found 1: [*]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* 24 * * *", "end of range (24) above maximum (23): 24"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("-1 * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        ("1- * * * *", 'failed to parse int from : strconv.Atoi: parsing "": invalid syntax'),
        (
            "99999999999999999999 * * * *",
            'failed to parse int from 99999999999999999999: strconv.Atoi: parsing "99999999999999999999": '
            "value out of range",
        ),
        ("* * L * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'),
        ("1_0 * * * *", 'failed to parse int from 1_0: strconv.Atoi: parsing "1_0": invalid syntax'),
        ("@foo", "unrecognized descriptor: @foo"),
        ("@Daily", "unrecognized descriptor: @Daily"),
        ("@every", "unrecognized descriptor: @every"),
        ("@every 5", 'failed to parse duration @every 5: time: missing unit in duration "5"'),
        ("@every 5x", 'failed to parse duration @every 5x: time: unknown unit "x" in duration "5x"'),
        ("TZ=foo", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
        ("TZ=Foo/Bar * * * * *", "provided bad location Foo/Bar: unknown time zone Foo/Bar"),
        ("TZ=../x * * * * *", "provided bad location ../x: time: invalid location name"),
        ("TZ=/etc * * * * *", "provided bad location /etc: time: invalid location name"),
    ],
)
def test_errors_of_schedules(text: str, problem: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert str(caught.value) == problem


@pytest.mark.parametrize(
    "text",
    [
        "* * * jan-mar mon-FRI",
        ", * * * *",
        "*-5/2 * * * *",
        "? ? ? ? ?",
        "0 0 31 2 *",
        "+5 * * * *",
        "1,2,,3 * * * *",
        "5/70 * * * *",
        "\t* * * * *",
        "59/1 23/1 31/1 12/1 6/1",
        "@every -5m",
        "CRON_TZ=Europe/Paris  @daily",
        "TZ=Local * * * * *",
    ],
)
def test_accepted(text: str) -> None:
    assert isinstance(parse(text), Calendar | Every)


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        pytest.param("*/15 * * * *", "2012-07-09T14:45:00+00:00", "2012-07-09T15:00:00+00:00", id="later only"),
        pytest.param("*/15 * * * *", "2012-07-09T14:59:59.9+00:00", "2012-07-09T15:00:00+00:00", id="part of a second"),
        pytest.param("20-35/15 * * * *", "2012-07-09T15:45:00+00:00", "2012-07-09T16:20:00+00:00", id="hour"),
        pytest.param("*/15 * * * *", "2012-07-09T23:46:00+00:00", "2012-07-10T00:00:00+00:00", id="day"),
        pytest.param("20-35/15 1/2 */2 * *", "2012-07-09T23:35:51+00:00", "2012-07-11T01:20:00+00:00", id="steps"),
        pytest.param("0 0 9 Apr-Oct ?", "2012-07-09T23:35:00+00:00", "2012-08-09T00:00:00+00:00", id="month"),
        pytest.param("0 0 * Feb Mon", "2012-07-09T23:35:00+00:00", "2013-02-04T00:00:00+00:00", id="year"),
        pytest.param("0 0 * Feb Mon/2", "2012-07-09T23:35:00+00:00", "2013-02-01T00:00:00+00:00", id="stepped weekday"),
        pytest.param("* * * * *", "2012-12-31T23:59:45+00:00", "2013-01-01T00:00:00+00:00", id="all at once"),
        pytest.param("0 0 29 Feb ?", "2012-07-09T23:35:00+00:00", "2016-02-29T00:00:00+00:00", id="leap year"),
        pytest.param("0 0 31 * *", "2012-01-31T00:00:00+00:00", "2012-03-31T00:00:00+00:00", id="long months"),
        pytest.param("0 0 31 2 *", "2012-07-09T23:35:00+00:00", None, id="never"),
        pytest.param(", * * * *", "2012-07-09T23:35:00+00:00", None, id="no minute"),
        pytest.param("0 0 1,15 * Sun", "2012-06-10T00:00:00+00:00", "2012-06-15T00:00:00+00:00", id="either day"),
        pytest.param(
            "0 0 */10 * Sun", "2012-07-09T00:00:00+00:00", "2012-07-11T00:00:00+00:00", id="a step is no star"
        ),
        pytest.param("0 0 * * Mon", "2012-07-10T00:00:00+00:00", "2012-07-16T00:00:00+00:00", id="weekday"),
        pytest.param("@hourly", "2012-07-09T15:00:00+00:00", "2012-07-09T16:00:00+00:00", id="hourly"),
        pytest.param("@daily", "2012-07-09T15:00:00+00:00", "2012-07-10T00:00:00+00:00", id="daily"),
        pytest.param("@weekly", "2012-07-09T15:00:00+00:00", "2012-07-15T00:00:00+00:00", id="weekly"),
        pytest.param("@monthly", "2012-07-09T15:00:00+00:00", "2012-08-01T00:00:00+00:00", id="monthly"),
        pytest.param("@yearly", "2012-07-09T15:00:00+00:00", "2013-01-01T00:00:00+00:00", id="yearly"),
        pytest.param("@every 90m", "2012-07-09T15:00:00.5+00:00", "2012-07-09T16:30:00+00:00", id="every"),
        pytest.param("@every 1ms", "2012-07-09T15:00:00+00:00", "2012-07-09T15:00:01+00:00", id="a second at least"),
        pytest.param("@every 2.9s", "2012-07-09T15:00:00+00:00", "2012-07-09T15:00:02+00:00", id="whole seconds"),
        pytest.param(
            "TZ=America/New_York 30 2 11 Mar ?",
            "2012-03-11T05:00:00+00:00",
            "2013-03-11T06:30:00+00:00",
            id="an hour that is skipped starts nothing",
        ),
        pytest.param(
            "TZ=America/New_York 30 1 04 Nov ?",
            "2012-11-04T05:30:00+00:00",
            "2012-11-04T06:30:00+00:00",
            id="a repeated hour starts twice",
        ),
        pytest.param(
            "TZ=America/Sao_Paulo 0 9 10 * ?",
            "2018-10-17T08:00:00+00:00",
            "2018-11-10T11:00:00+00:00",
            id="a midnight that is skipped on the way",
        ),
        pytest.param(
            "TZ=Asia/Kolkata 0 0 * * *", "2018-10-17T18:30:00+00:00", "2018-10-18T18:30:00+00:00", id="half hours"
        ),
    ],
)
def test_next(schedule: str, after: str, expected: str | None) -> None:
    assert next_time(schedule, after) == expected


def test_local_zone_is_used_where_the_schedule_names_none() -> None:
    after, berlin = datetime(2026, 1, 1, tzinfo=UTC), ZoneInfo("Europe/Berlin")
    assert parse("0 9 * * *").next(after, berlin) == datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert parse("TZ=UTC 0 9 * * *").next(after, berlin) == datetime(2026, 1, 1, 9, tzinfo=UTC)


MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))
FIELDS = st.tuples(
    st.sampled_from(("*", "*/7", "0", "30-45/5", "3,59")),
    st.sampled_from(("*", "0", "1-3", "*/6", "23")),
    st.sampled_from(("*", "1", "29", "*/10", "5-9")),
    st.sampled_from(("*", "2", "1/3", "jun-aug")),
    st.sampled_from(("*", "sun", "1-5", "*/2")),
)


@given(FIELDS, MOMENTS)
def test_next_is_the_first_minute_that_matches(fields: tuple[str, ...], after: datetime) -> None:
    schedule = parse(" ".join(fields))
    assert isinstance(schedule, Calendar)

    def matches(moment: datetime) -> bool:
        clock = moment.minute in schedule.minute and moment.hour in schedule.hour
        return clock and moment.month in schedule.month and schedule.matches_day(moment)

    found = schedule.next(after)
    assert found is not None
    assert found > after
    assert matches(found)
    minute = max(after.replace(second=0, microsecond=0), found - timedelta(days=2)) + timedelta(minutes=1)
    while minute < found:
        assert not matches(minute)
        minute += timedelta(minutes=1)


@given(MOMENTS, st.sampled_from(("America/New_York", "Europe/Berlin", "Asia/Tokyo", "America/St_Johns")))
def test_the_local_time_matches_the_schedule(moment: datetime, name: str) -> None:
    zone = load_zone(name)
    wall = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    assert instant(wall, zone).astimezone(zone).replace(tzinfo=None, fold=0) == wall


def test_a_skipped_time_is_an_hour_off() -> None:
    zone = load_zone("America/New_York")
    found = instant(datetime(2012, 3, 11, 2, 30), zone)
    assert found == datetime(2012, 3, 11, 1, 30, tzinfo=timezone(timedelta(hours=-5)))


@pytest.mark.parametrize("name", ["", "UTC"])
def test_an_empty_name_is_utc(name: str) -> None:
    assert load_zone(name) is UTC


@pytest.mark.parametrize("name", ["Nowhere/City", "America", "Europe/Berlin\0"])
def test_unknown_zone(name: str) -> None:
    with pytest.raises(FormatError, match="unknown time zone"):
        load_zone(name)


SKIPPED = [line.split("|") for line in (Path(__file__).parent / "skipped_midnights.txt").read_text().splitlines()]
"""Zone, schedule, a moment, and the time that the library of Kubernetes finds next: first midnights of months that do
not exist, 2000 to 2036."""


def test_months_that_begin_without_a_midnight() -> None:
    wrong = []
    for zone, schedule, after, expected in SKIPPED:
        found = next_time(f"TZ={zone} {schedule}", after)
        if found != (None if expected == "none" else expected.replace("Z", "+00:00")):
            wrong.append((zone, schedule, after))
    assert wrong == []


@pytest.mark.parametrize("schedule", ["TZ=America/New_York 0 0 1 1 *", "TZ=Asia/Tokyo * * * * *", "@every 8760h"])
@pytest.mark.parametrize("after", ["0001-01-01T00:00:00Z", "9990-12-31T23:59:59Z", "9999-12-31T23:59:59Z"])
def test_the_ends_of_the_calendar_are_no_error(schedule: str, after: str) -> None:
    found = next_time(schedule, after)
    assert found is None or found > after
