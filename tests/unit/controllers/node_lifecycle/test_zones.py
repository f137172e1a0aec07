"""How fast the nodes of a zone are tainted, and what the states of all zones together change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.controllers.node_lifecycle.plan import Change, Rates, ZoneState, plan_zones
from kcm_cli.controllers.node_lifecycle.zones import ZoneQueue

RATES = Rates(0.1, 0.01, 50)
N, P, F = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL


@pytest.mark.parametrize(
    ("state", "nodes", "rate"),
    [
        pytest.param(N, 10, 0.1, id="normal"),
        pytest.param(F, 10, 0.1, id="full"),
        pytest.param(P, 50, 0.0, id="partial, small"),
        pytest.param(P, 51, 0.01, id="partial, large"),
    ],
)
def test_rates(state: ZoneState, nodes: int, rate: float) -> None:
    assert RATES.of(state, nodes) == rate


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param({}, {"a": N}, Change({"a": N}, {"a": 0.1}), id="a new zone"),
        pytest.param({"a": N}, {"a": N}, Change({"a": N}, {}), id="nothing changes"),
        pytest.param({"a": N, "b": N}, {"a": P, "b": N}, Change({"a": P, "b": N}, {"a": 0.0}), id="one is disrupted"),
        pytest.param({"a": P, "b": N}, {"a": N, "b": N}, Change({"a": N, "b": N}, {"a": 0.1}), id="and recovers"),
        pytest.param({"a": N, "b": N}, {"a": F, "b": N}, Change({"a": F, "b": N}, {"a": 0.1}), id="one is down"),
        pytest.param({"a": F, "b": N}, {"a": F, "b": F}, Change({"a": F, "b": F}, {"a": 0.0, "b": 0.0}, let_off=True),
                     id="the last zone goes down"),
        pytest.param({"a": F, "b": F}, {"a": F, "b": F}, Change({"a": F, "b": F}, {}), id="all stay down"),
        pytest.param({"a": F, "b": F}, {"a": F, "b": N}, Change({"a": F, "b": N}, {"a": 0.1, "b": 0.1}, restart=True),
                     id="one recovers: all rates are reset"),
        pytest.param({}, {"a": F}, Change({"a": F}, {"a": 0.0}, let_off=True), id="the first look finds all down"),
        pytest.param({"a": F}, {"a": F, "b": F}, Change({"a": F, "b": F}, {"a": 0.0, "b": 0.0}, let_off=True),
                     id="a new zone is down"),
        pytest.param({"a": N, "b": F}, {"b": F}, Change({"b": F}, {}), id="the only healthy zone is removed"),
    ],
)  # fmt: skip
def test_disruption(before: dict[str, ZoneState], now: dict[str, ZoneState], expected: Change) -> None:
    assert plan_zones(before, now, dict.fromkeys(now, 10), RATES) == expected


states = st.dictionaries(st.sampled_from("abc"), st.sampled_from([N, P, F]), min_size=1)


@given(states, states, st.integers(1, 100))
def test_while_all_are_down_nothing_is_evicted(
    before: dict[str, ZoneState], now: dict[str, ZoneState], size: int
) -> None:
    change = plan_zones(before, now, dict.fromkeys(now, size), RATES)
    assert change.states == now
    if set(now.values()) == {F}:
        assert not change.restart
        assert set(change.rates.values()) <= {0.0}
    else:
        assert not change.let_off
        assert all(rate == RATES.of(now[zone], size) for zone, rate in change.rates.items())


# -- the queue


def drained(queue: ZoneQueue, until: float, step: float = 0.1) -> list[tuple[int, str]]:
    """Which nodes come when, if each is done at once."""
    found = []
    for tick in range(int(until / step) + 1):
        while (name := queue.next(tick * step)) is not None:
            queue.done(name)
            found.append((round(tick * step), name))
    return found


def queue_of(*names: str, rate: float = 0.1) -> ZoneQueue:
    queue = ZoneQueue(rate)
    for name in names:
        assert queue.add(name)
    return queue


def test_nodes_are_dequeued_in_order_at_the_rate() -> None:
    assert drained(queue_of("c", "a", "b"), 30) == [(0, "c"), (10, "a"), (20, "b")]


def test_a_stopped_queue_returns_nothing() -> None:
    assert drained(queue_of("a", rate=0), 100) == []


def test_a_node_is_queued_once_until_it_is_removed() -> None:
    queue = queue_of("a")
    assert not queue.add("a")
    assert queue.next(0) == "a"
    queue.done("a")
    assert (len(queue), queue.add("a")) == (0, False)
    assert queue.remove("a") and not queue.remove("a")
    assert queue.add("a")


def test_a_removed_node_is_not_dequeued() -> None:
    queue = queue_of("a", "b")
    queue.remove("a")
    assert drained(queue, 5) == [(0, "b")]


def test_a_requeued_node_does_not_block_others() -> None:
    queue = queue_of("a", "b", rate=1)
    assert queue.next(0) == "a"
    queue.later("a", 2.5)
    queue.later("stranger", 0)
    assert drained(queue, 5) == [(1, "b"), (2, "a")]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(0.1, 0.01, [(100, "b")], id="slower: who waited waits on"),
        pytest.param(0.1, 1.0, [(1, "b")], id="faster: who waited waits on"),
        pytest.param(0.1, 0.1, [(10, "b")], id="the same: nothing changes"),
        pytest.param(0.1, 0.0, [], id="stopped"),
    ],
)
def test_a_change_of_the_rate_releases_no_node_at_once(
    first: float, second: float, expected: list[tuple[int, str]]
) -> None:
    queue = queue_of("a", "b", rate=first)
    queue.next(0)
    queue.done("a")
    queue.set_rate(second, 0)
    assert drained(queue, 120) == expected


@pytest.mark.parametrize(("rate", "second"), [(0.1, 10), (1.0, 1)])
def test_a_restarted_queue_starts_without_tokens(rate: float, second: int) -> None:
    queue = queue_of("a", rate=0)
    queue.set_rate(rate, 0)
    assert drained(queue, 20) == [(second, "a")]


def test_a_change_without_waiters_has_no_effect() -> None:
    queue = queue_of("a")
    queue.set_rate(0.01, 0)
    assert drained(queue, 20) == [(0, "a")]


@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=6))
def test_never_faster_than_the_fastest_rate(rates: list[float]) -> None:
    """However often the rate changes: one at once, and then no more than the fastest rate lets."""
    queue = queue_of(*(f"n{n}" for n in range(200)), rate=rates[0])
    came = 0
    for second in range(60):
        queue.set_rate(rates[second // 10 % len(rates)], float(second))
        while (name := queue.next(float(second))) is not None:
            queue.done(name)
            came += 1
    assert came <= 1 + 60 * max(rates)
