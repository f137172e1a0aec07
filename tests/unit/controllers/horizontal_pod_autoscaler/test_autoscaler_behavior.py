"""Stabilization, rates and limits."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.autoscaling import Behavior, ScalingPolicy, ScalingRules
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import behavior
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.behavior import Bounds
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import History, Mark

NOW = 10_000.0


def ago(seconds: int) -> float:
    return NOW - seconds


def limited(rules: Behavior | None, bounds: Bounds, history: History = History()) -> tuple[int, str]:  # noqa: B008
    result = behavior.normalized(rules, bounds, history, NOW, 300)
    return result.limited.replicas, result.limited.reason


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        pytest.param(Bounds(3, 5, 1, 10), (5, "DesiredWithinRange"), id="fits"),
        pytest.param(Bounds(3, 9, 1, 10), (6, "ScaleUpLimit"), id="at most double"),
        pytest.param(Bounds(1, 9, 1, 10), (4, "ScaleUpLimit"), id="or four"),
        pytest.param(Bounds(8, 12, 1, 10), (10, "TooManyReplicas"), id="maximum"),
        pytest.param(Bounds(8, 1, 2, 10), (2, "TooFewReplicas"), id="minimum"),
    ],
)
def test_without_behavior(bounds: Bounds, expected: tuple[int, str]) -> None:
    assert limited(None, bounds) == expected


PODS_2 = ScalingRules(0, "Max", (ScalingPolicy("Pods", 2, 60),))
TWO = (ScalingPolicy("Pods", 2, 60), ScalingPolicy("Percent", 50, 60))


@pytest.mark.parametrize(
    ("rules", "bounds", "history", "expected"),
    [
        pytest.param(Behavior(), Bounds(2, 20, 1, 30), History(), (6, "ScaleUpLimit"), id="defaults"),
        pytest.param(Behavior(PODS_2), Bounds(4, 9, 1, 30), History(), (6, "ScaleUpLimit"), id="pods"),
        pytest.param(
            Behavior(PODS_2), Bounds(4, 9, 1, 30), History(ups=(Mark(2, ago(30)),)), (4, "ScaleUpLimit"), id="used up"
        ),
        pytest.param(
            Behavior(PODS_2), Bounds(4, 9, 1, 30), History(ups=(Mark(2, ago(61)),)), (6, "ScaleUpLimit"), id="expired"
        ),
        pytest.param(
            Behavior(ScalingRules(0, "Max", TWO)), Bounds(10, 30, 1, 30), History(), (15, "ScaleUpLimit"), id="max"
        ),
        pytest.param(
            Behavior(ScalingRules(0, "Min", TWO)), Bounds(10, 30, 1, 30), History(), (12, "ScaleUpLimit"), id="min"
        ),
        pytest.param(
            Behavior(None, ScalingRules(0, "Max", TWO)),
            Bounds(10, 1, 1, 30),
            History(),
            (5, "ScaleDownLimit"),
            id="down",
        ),
        pytest.param(
            Behavior(None, ScalingRules(0, "Min", TWO)),
            Bounds(10, 1, 1, 30),
            History(),
            (8, "ScaleDownLimit"),
            id="slow",
        ),
        pytest.param(
            Behavior(None, ScalingRules(0, "Disabled")),
            Bounds(10, 1, 1, 30),
            History(),
            (10, "ScaleDownLimit"),
            id="off",
        ),
        pytest.param(
            Behavior(ScalingRules(0, "Max", (ScalingPolicy("Pods", 2**31 - 1, 60),))),
            Bounds(2, 14, 1, 30),
            History(),
            (14, "DesiredWithinRange"),
            id="so many pods that their number with those there are is none of 32 bits",
        ),
        pytest.param(
            Behavior(ScalingRules(0, "Max", (ScalingPolicy("Percent", 2**31 - 1, 60),))),
            Bounds(2**30, 2**31 - 1, 1, 2**31 - 1),
            History(),
            (2**31 - 1, "DesiredWithinRange"),
            id="so many percent that their number is none of 32 bits",
        ),
        pytest.param(
            Behavior(ScalingRules(0, "Max", (ScalingPolicy("Pods", 2**31 - 3, 60),))),
            Bounds(2, 14, 1, 10),
            History(),
            (10, "TooManyReplicas"),
            id="the most pods that are a number of 32 bits",
        ),
    ],
)
def test_rates(rules: Behavior, bounds: Bounds, history: History, expected: tuple[int, str]) -> None:
    assert limited(rules, bounds, history) == expected


@pytest.mark.parametrize(
    ("rules", "desired", "marks", "able"),
    [
        pytest.param(None, 2, (Mark(4, ago(10)),), (4, "ScaleDownStabilized"), id="highest recent"),
        pytest.param(None, 2, (Mark(4, ago(301)),), (2, "ReadyForNewScale"), id="too old"),
        pytest.param(None, 2, (Mark(9, ago(10)),), (9, "ScaleDownStabilized"), id="above the present size"),
        pytest.param(Behavior(), 2, (Mark(9, ago(10)),), (5, "ScaleDownStabilized"), id="with a behavior not above it"),
        pytest.param(Behavior(), 2, (Mark(4, ago(10)),), (4, "ScaleDownStabilized"), id="default window down"),
        pytest.param(
            Behavior(ScalingRules(60)), 9, (Mark(6, ago(10)),), (6, "ScaleUpStabilized"), id="lowest recent up"
        ),
        pytest.param(Behavior(), 9, (Mark(6, ago(10)),), (9, "ReadyForNewScale"), id="no window up"),
    ],
)
def test_stabilization(rules: Behavior | None, desired: int, marks: tuple[Mark, ...], able: tuple[int, str]) -> None:
    result = behavior.normalized(rules, Bounds(5, desired, 1, 20), History(marks), NOW, 300)
    assert (result.able.replicas, result.able.reason) == able
    assert result.history.recommendations[-1] == Mark(desired, NOW)


def test_a_change_replaces_the_last_one_outside_all_periods_of_its_direction() -> None:
    """The others stay: policies of the other direction may count them for longer."""
    short, long = (ScalingRules(0, "Max", (ScalingPolicy("Pods", 1, period),)) for period in (15, 60))
    ups = (Mark(1, ago(30)), Mark(2, ago(20)), Mark(4, ago(10)))
    history = behavior.scaled(History(ups=ups), Behavior(short, long), 5, 8, NOW)
    assert history.ups == (Mark(1, ago(30)), Mark(3, NOW), Mark(4, ago(10)))
    assert behavior.scaled(history, Behavior(long, long), 8, 9, NOW).ups == (*history.ups, Mark(1, NOW))


@given(st.integers(1, 50), st.integers(0, 100), st.integers(1, 5), st.integers(10, 60), st.booleans())
def test_never_beyond_the_spec(current: int, desired: int, minimum: int, maximum: int, rated: bool) -> None:
    current = max(min(current, maximum), minimum)
    size, _ = limited(Behavior() if rated else None, Bounds(current, desired, minimum, maximum))
    assert minimum <= size <= maximum


wanted = st.lists(st.integers(0, 40), min_size=1, max_size=40)
limits = st.tuples(st.integers(1, 5), st.integers(5, 30))


def followed(
    rules: Behavior | None, recommendations: list[int], bounds: tuple[int, int], step_s: int, window_s: float
) -> Iterator[tuple[int, int, list[int]]]:
    """Size before, size after and what was recommended within the window, for one look after the other."""
    minimum, maximum = bounds
    current, now, past = minimum, NOW, [(NOW, minimum)]
    history = behavior.first_seen(None, current, now)
    for recommendation in recommendations:
        now += step_s
        result = behavior.normalized(rules, Bounds(current, recommendation, minimum, maximum), history, now, window_s)
        recent = [number for at, number in past if at > now - window_s] + [recommendation]
        past.append((now, recommendation))
        size, before = result.limited.replicas, current
        yield before, size, recent
        history = behavior.scaled(result.history, rules, before, size, now) if size != before else result.history
        current = size


@given(wanted, limits, st.sampled_from((5, 15, 60)), st.sampled_from((0.0, 60.0, 300.0)), st.booleans())
def test_scale_down_waits_for_the_stabilization_window(
    recommendations: list[int], bounds: tuple[int, int], step_s: int, window_s: float, rated: bool
) -> None:
    rules = Behavior(scale_down=ScalingRules(int(window_s))) if rated else None
    for before, size, recent in followed(rules, recommendations, bounds, step_s, window_s):
        assert bounds[0] <= size <= bounds[1]
        if size < before:
            assert size >= min(max(recent), bounds[1])
        if rated and recent[-1] <= before:
            assert size <= before  # up only on demand


@given(wanted, limits, st.sampled_from((5, 15, 60)), st.sampled_from((15, 60)), st.integers(1, 4))
def test_no_faster_than_the_policies(
    recommendations: list[int], bounds: tuple[int, int], step_s: int, period_s: int, pods: int
) -> None:
    policy = (ScalingPolicy("Pods", pods, period_s),)
    rules = Behavior(ScalingRules(0, "Max", policy), ScalingRules(0, "Max", policy))
    sizes = [bounds[0], *(size for _, size, _ in followed(rules, recommendations, bounds, step_s, 0.0))]
    looks = -(-period_s // step_s)
    for position in range(1, len(sizes)):
        before, size, start = sizes[position - 1], sizes[position], sizes[max(0, position - looks)]
        if size != before:  # against the size when the period began
            assert abs(size - start) <= pods


@given(st.integers(1, 40), limits, st.integers(0, 40))
def test_a_steady_recommendation_is_reached_and_kept(first: int, bounds: tuple[int, int], steady: int) -> None:
    recommendations = [first, *(steady for _ in range(60))]
    sizes = [size for _, size, _ in followed(Behavior(), recommendations, bounds, 15, 300.0)]
    assert set(sizes[-20:]) == {min(max(steady, bounds[0]), bounds[1])}
