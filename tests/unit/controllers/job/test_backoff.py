from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kcm_cli.api.core import Pod
from kcm_cli.controllers.job.backoff import FRESH, Backoff, finished_at
from kcm_cli.controllers.job.plan.decide import remaining_s
from kcm_cli.machinery.times import format_time

NOW = datetime(2026, 1, 2, 3, 10, tzinfo=UTC)


def before(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("failures", "ago_s", "expected"),
    [
        pytest.param(1, 0, 10, id="first"),
        pytest.param(1, 4, 6, id="part of it passed"),
        pytest.param(1, 10, 0, id="just passed"),
        pytest.param(1, 99, 0, id="long passed"),
        pytest.param(2, 0, 20, id="doubled"),
        pytest.param(5, 0, 160, id="doubled again"),
        pytest.param(6, 0, 320, id="below the limit"),
        pytest.param(7, 0, 600, id="limited to ten minutes"),
        pytest.param(10_000, 0, 600, id="no overflow"),
    ],
)
def test_delay_doubles(failures: int, ago_s: float, expected: float) -> None:
    assert remaining_s(failures, before(ago_s), NOW) == expected


def test_no_failure_no_delay() -> None:
    assert remaining_s(FRESH.failures, FRESH.last_failure, NOW) == 0


@pytest.mark.parametrize(
    ("known", "succeeded", "failed", "expected"),
    [
        pytest.param(Backoff(2, before(50)), [], [], Backoff(2, before(50)), id="nothing new"),
        pytest.param(FRESH, [], [30, 20], Backoff(2, before(20)), id="latest failure counts"),
        pytest.param(Backoff(2, before(50)), [], [30], Backoff(3, before(30)), id="added up"),
        pytest.param(Backoff(2, before(50)), [10], [], FRESH, id="success forgets"),
        pytest.param(Backoff(2, before(50)), [30], [40, 20, 10], Backoff(2, before(10)), id="later than the success"),
        pytest.param(Backoff(2, before(50)), [10], [20], FRESH, id="earlier than the success"),
        pytest.param(FRESH, [10], [10], FRESH, id="at the same time"),
    ],
)
def test_record(
    known: Backoff, succeeded: list[int], failed: list[int], expected: Backoff, make_pod: Callable[..., Pod]
) -> None:
    def pods(times: list[int]) -> list[Pod]:
        return [make_pod(f"p{ago}", exit_code=1, ended=format_time(before(ago))) for ago in times]

    assert known.after(pods(succeeded), pods(failed)) == expected


def test_a_pod_ends_with_its_last_container(make_pod: Callable[..., Pod]) -> None:
    assert finished_at(make_pod("p", exit_code=1, ended="2026-01-02T03:04:05Z")) == datetime(
        2026, 1, 2, 3, 4, 5, tzinfo=UTC
    )


def test_a_pod_without_ended_containers_ends_when_it_is_not_ready(make_pod: Callable[..., Pod]) -> None:
    assert finished_at(make_pod("p", ended="2026-01-02T03:04:05Z")) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_deleted_ready_pod_ends_at_its_deletion_timestamp(make_pod: Callable[..., Pod]) -> None:
    pod = make_pod("p", ready=True, deleting="2026-01-02T03:04:35Z")
    assert finished_at(pod) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_any_other_pod_ends_at_its_creation(make_pod: Callable[..., Pod]) -> None:
    pod = make_pod("p", ready=True, created="2026-01-02T03:04:05Z")
    assert finished_at(pod) == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
