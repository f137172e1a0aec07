from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import (
    FIRST,
    LAST,
    format_micro_time,
    format_time,
    parse_micro_time,
    parse_time,
    seconds_of,
)

moments = st.datetimes(timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.000006Z", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2026-01-02T03:04:05.5+02:00", datetime(2026, 1, 2, 1, 4, 5, 500000, tzinfo=UTC)),
        ("0000-02-29T03:04:05Z", FIRST),
        ("0000-12-31T23:59:59-23:00", FIRST),
        ("0001-01-01T00:00:00+01:00", FIRST),
        ("9999-12-31T23:59:59-01:00", LAST),
    ],
)
def test_parses_rfc3339(text, moment):
    parsed = parse_time(text)
    assert parsed == moment
    assert parsed.tzinfo is UTC


_AS = 'as "2006-01-02T15:04:05Z07:00"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f'parsing time "" {_AS}: cannot parse "" as "2006"'),
        ("soon", f'parsing time "soon" {_AS}: cannot parse "soon" as "2006"'),
        ("0000-13-02T00:00:00Z", 'parsing time "0000-13-02T00:00:00Z": month out of range'),
        ("2026-01-02", f'parsing time "2026-01-02" {_AS}: cannot parse "" as "T"'),
        ("2026-13-02T00:00:00Z", 'parsing time "2026-13-02T00:00:00Z": month out of range'),
        ("2026-02-30T00:00:00Z", 'parsing time "2026-02-30T00:00:00Z": day out of range'),
        ("2026-01-02T03:04:05", f'parsing time "2026-01-02T03:04:05" {_AS}: cannot parse "" as "Z07:00"'),
        ("2026-01-02T03:04:05Zx", 'parsing time "2026-01-02T03:04:05Zx": extra text: "x"'),
        (
            "2026-01-02 03:04:05Z",
            f'parsing time "2026-01-02 03:04:05Z" {_AS}: cannot parse " 03:04:05Z" as "T"',
        ),
    ],
)
def test_error_messages(text, message):
    with pytest.raises(FormatError) as caught:
        parse_time(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["2026-W01-1T03:04:05Z", "2026-01-02T03:04,05Z", "2026-01-02T030405.1Z"])
def test_refuses_similar_formats(text):
    with pytest.raises(FormatError):
        parse_time(text)


def test_writes_utc_whatever_the_zone():
    east = timezone(timedelta(hours=2))
    assert format_time(datetime(2026, 1, 2, 3, 4, 5, 999999, tzinfo=east)) == "2026-01-02T01:04:05Z"
    assert format_micro_time(datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=east)) == "2026-01-02T01:04:05.000006Z"


@given(moments)
def test_micro_time_round_trips(moment):
    assert parse_time(format_micro_time(moment)) == moment


@given(moments)
def test_time_drops_only_the_fraction(moment):
    assert parse_time(format_time(moment)) == moment.replace(microsecond=0)


_MICRO = 'as "2006-01-02T15:04:05.000000Z07:00"'


def test_a_micro_time_has_six_decimals():
    assert parse_micro_time("2026-01-02T03:04:05.000006Z") == datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert parse_micro_time("2026-01-02T03:04:05.500000+02:00") == datetime(2026, 1, 2, 1, 4, 5, 500000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "rest", "element"),
    [
        ("x", "x", "2006"),
        ("2026-01-02T03:04:05Z", "Z", ".000000"),
        ("2026-01-02T03:04:05.5Z", ".5Z", ".000000"),
        ("2026-01-02T03:04:05.1234567Z", "7Z", "Z07:00"),
    ],
)
def test_refuses_a_micro_time_of_another_precision(text, rest, element):
    with pytest.raises(FormatError) as caught:
        parse_micro_time(text)
    assert str(caught.value) == f'parsing time "{text}" {_MICRO}: cannot parse "{rest}" as "{element}"'


def test_seconds_of_an_invalid_time_are_none():
    assert seconds_of("1970-01-01T00:01:00Z") == 60.0
    assert [seconds_of(text) for text in (None, "", "soon")] == [None, None, None]
