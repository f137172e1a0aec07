"""Lines of logs, and which of them a client gets."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kcm_cli.sandbox.kubelet_api.log_lines import LogOptions, parameters, whole_lines
from kcm_cli.sandbox.programs.execution import Written
from tests.kit.growth import grows_linearly

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LINES = [(START + timedelta(seconds=at_s), text) for at_s, text in ((0.25, "a\n"), (0.5, "b\n"), (1.0, "c"))]


@pytest.mark.parametrize(
    ("end_s", "lines"),
    [(None, [(0.0, "a\n"), (2.0, "bc\r\n")]), (9.0, [(0.0, "a\n"), (2.0, "bc\r\n"), (9.0, "d\x0ce")])],
    ids=["running", "ended"],
)
def test_a_line_without_its_end_is_written_when_the_program_ends(
    end_s: float | None, lines: list[tuple[float, str]]
) -> None:
    output = [Written(0.0, "a\nb"), Written(2.0, "c\r\nd"), Written(3.0, "\x0ce")]
    assert list(whole_lines(output, end_s)) == lines


def test_a_line_of_many_pieces_costs_what_it_has() -> None:
    """As of a client that sends a megabyte byte by byte."""

    def prepare(size: int) -> Callable[[], object]:
        output = [Written(0.0, "x" * 100)] * size
        return lambda: list(whole_lines(output, 1.0))

    assert grows_linearly(prepare, 2000)


def test_times_of_lines_have_nanoseconds() -> None:
    assert LogOptions({"timestamps": "true"}, START).past(LINES) == (
        b"2026-01-02T03:04:05.250000000Z a\n2026-01-02T03:04:05.500000000Z b\n2026-01-02T03:04:06.000000000Z c"
    )


@pytest.mark.parametrize(
    ("since", "lines"),
    [
        ("2026-01-02T03:04:05.500000001Z", b"a\nb\nc"),
        ("2026-01-02T03:04:06Z", b"c"),
        ("2026-01-02T04:04:07+01:00", b""),
    ],
)
def test_the_time_since_which_lines_are_asked_for_is_cut_to_a_second(since: str, lines: bytes) -> None:
    """The API server passes it on like this (kubernetes#77856)."""
    assert LogOptions({"sinceTime": since}, START).past(LINES) == lines


@pytest.mark.parametrize("seconds", ["100000000000", str(2**63 - 1)])
def test_lines_since_before_the_year_1_are_all_lines(seconds: str) -> None:
    assert LogOptions({"sinceSeconds": seconds}, START).past(LINES) == b"a\nb\nc"


def test_parameters_of_the_request_to_a_kubelet() -> None:
    query = {"sinceTime": "2026-01-02T04:04:05.5+01:00", "follow": "1", "previous": "false", "tailLines": "3"}
    assert parameters(query) == "?follow=true&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=3"
