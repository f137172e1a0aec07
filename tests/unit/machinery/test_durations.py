import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery.durations import format_duration, format_nanoseconds, parse_duration, parse_nanoseconds
from kcm_cli.machinery.errors import FormatError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("-0", 0),
        ("5s", 5),
        ("1h30m", 5400),
        ("300ms", 0.3),
        ("-1.5h", -5400),
        ("+5s", 5),
        ("1.s", 1),
        (".5s", 0.5),
        ("1m0.25s", 60.25),
        ("10us", 1e-5),
        ("10µs", 1e-5),
        ("10μs", 1e-5),
        ("15ns", 1.5e-8),
    ],
)
def test_parses_as_in_go(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("3", 'time: missing unit in duration "3"'),
        ("1h3", 'time: missing unit in duration "1h3"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1h 5m", 'time: unknown unit "h " in duration "1h 5m"'),
        ("9" * 5000 + "ns", 'time: invalid duration "' + "9" * 5000 + 'ns"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
    ],
)
def test_error_messages(text, message):
    with pytest.raises(FormatError) as caught:
        parse_duration(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (5, "5s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (5400, "1h30m0s"),
        (0.3, "300ms"),
        (1.5, "1.5s"),
        (0.0000015, "1.5µs"),
        (2e-9, "2ns"),
        (-61.25, "-1m1.25s"),
        (86400, "24h0m0s"),
    ],
)
def test_formats_as_in_go(seconds, text):
    assert format_duration(seconds) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_duration_round_trips(nanoseconds):
    assert parse_nanoseconds(format_nanoseconds(nanoseconds)) == nanoseconds
