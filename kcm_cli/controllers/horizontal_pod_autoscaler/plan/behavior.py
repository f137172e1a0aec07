"""Limits how fast a recommendation is followed: stabilization windows, scaling policies, and the limits of the spec.

The history is immutable: functions that add to it return a new one. It does not grow beyond one window. Its times, and
``now``, are monotonic seconds.

upstream: pkg/controller/podautoscaler/horizontal.go#normalizeDesiredReplicas, #normalizeDesiredReplicasWithBehaviors
"""

import math
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from kcm_cli.api.autoscaling import Behavior, ScalingPolicy, ScalingRules
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import History, Mark

_UP = ScalingRules(0, "Max", (ScalingPolicy("Pods", 4, 15), ScalingPolicy("Percent", 100, 15)))
_DOWN = ScalingRules(None, "Max", (ScalingPolicy("Percent", 100, 15),))
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class Bounds(msgspec.Struct, frozen=True):
    """The current and the desired size, and the allowed range."""

    current: int
    desired: int
    minimum: int
    maximum: int


class Limit(msgspec.Struct, frozen=True):
    """A size with the reason and message of the condition that reports it."""

    replicas: int
    reason: str
    message: str


class Normalized(msgspec.Struct, frozen=True):
    """The size to scale to, and the reasons: ``able`` for AbleToScale, ``limited`` for ScalingLimited."""

    able: Limit
    limited: Limit
    history: History

    @property
    def is_limited(self) -> bool:
        return self.limited.replicas != self.able.replicas


def normalized(
    behavior: Behavior | None, bounds: Bounds, history: History, now: float, down_window_s: float
) -> Normalized:
    """Limit a recommendation by stabilization windows, policies and the spec."""
    if behavior is None:
        stable = _highest_recent(bounds, history, now, down_window_s)
        kept = _remembered(history, bounds.desired, now, down_window_s)
        return Normalized(stable, _within_rules(replace(bounds, desired=stable.replicas)), kept)
    up, down = rules(behavior)
    up_s = float(up.stabilization_window_seconds or 0)
    given = down.stabilization_window_seconds
    down_s = float(int(down_window_s) if given is None else given)
    stable = _stabilized(bounds, history, now, up_s, down_s)
    limited = _within_rates(replace(bounds, desired=stable.replicas), history, now, (up, down))
    return Normalized(stable, limited, _remembered(history, bounds.desired, now, max(up_s, down_s)))


def rules(behavior: Behavior) -> tuple[ScalingRules, ScalingRules]:
    """The rules for scaling up and down, with the API's defaults for absent fields."""
    return _defaulted(behavior.scale_up, _UP), _defaulted(behavior.scale_down, _DOWN)


def first_seen(history: History | None, current: int, now: float) -> History:
    """The history. For an autoscaler without one, the current size counts as a recommendation."""
    return History((Mark(current, now),)) if history is None else history


def scaled(history: History, behavior: Behavior | None, before: int, after: int, now: float) -> History:
    """The history with a change of size, which the policies count."""
    if behavior is None:
        return history
    up, down = rules(behavior)
    if after > before:
        return replace(history, ups=_with_change(history.ups, Mark(after - before, now), _longest(up)))
    return replace(history, downs=_with_change(history.downs, Mark(before - after, now), _longest(down)))


def _with_change(marks: tuple[Mark, ...], new: Mark, seconds: float) -> tuple[Mark, ...]:
    """The changes with one more. It replaces the last one that is older than all policies of its direction.

    Other old changes are kept, as upstream: policies of the other direction may have longer periods.
    """
    start = new.at - seconds
    place = max((index for index, mark in enumerate(marks) if mark.at < start), default=len(marks))
    return (*marks[:place], new, *marks[place + 1 :])


def _defaulted(given: ScalingRules | None, default: ScalingRules) -> ScalingRules:
    if given is None:
        return default
    window = given.stabilization_window_seconds
    return msgspec.structs.replace(
        given,
        stabilization_window_seconds=default.stabilization_window_seconds if window is None else window,
        select_policy=given.select_policy or default.select_policy,
        policies=given.policies or default.policies,
    )


def _longest(rules: ScalingRules) -> float:
    return max((policy.period_seconds for policy in rules.policies), default=0)


def _since(marks: Iterable[Mark], now: float, seconds: float) -> tuple[Mark, ...]:
    return tuple(mark for mark in marks if mark.at >= now - seconds)


def _remembered(history: History, desired: int, now: float, seconds: float) -> History:
    return replace(history, recommendations=(*_since(history.recommendations, now, seconds), Mark(desired, now)))


def _ready(desired: int) -> Limit:
    return Limit(desired, "ReadyForNewScale", "recommended size matches current size")


def _highest_recent(bounds: Bounds, history: History, now: float, seconds: float) -> Limit:
    recent = _since(history.recommendations, now, seconds)
    highest = max((mark.number for mark in recent), default=bounds.desired)
    return _ready(bounds.desired) if highest <= bounds.desired else _down_stabilized(highest)


def _down_stabilized(replicas: int) -> Limit:
    text = "recent recommendations were higher than current one, applying the highest recent recommendation"
    return Limit(replicas, "ScaleDownStabilized", text)


def _stabilized(bounds: Bounds, history: History, now: float, up_s: float, down_s: float) -> Limit:
    """The size closest to the current one that lies within the recommendations of both windows."""
    lowest = min((bounds.desired, *_numbers(history.recommendations, now, up_s)))
    highest = max((bounds.desired, *_numbers(history.recommendations, now, down_s)))
    replicas = min(max(bounds.current, lowest), highest)
    if replicas == bounds.desired:
        return _ready(replicas)
    if bounds.desired < bounds.current:
        return _down_stabilized(replicas)
    text = "recent recommendations were lower than current one, applying the lowest recent recommendation"
    return Limit(replicas, "ScaleUpStabilized", text)


def _numbers(marks: Iterable[Mark], now: float, seconds: float) -> tuple[int, ...]:
    return tuple(mark.number for mark in marks if mark.at > now - seconds)


def _fits(replicas: int) -> Limit:
    return Limit(replicas, "DesiredWithinRange", "the desired count is within the acceptable range")


def _too_few(minimum: int) -> Limit:
    return Limit(minimum, "TooFewReplicas", "the desired replica count is less than the minimum replica count")


def _at_most(maximum: int, rate: int) -> Limit:
    if maximum > rate:
        text = "the desired replica count is increasing faster than the maximum scale rate"
        return Limit(rate, "ScaleUpLimit", text)
    return Limit(maximum, "TooManyReplicas", "the desired replica count is more than the maximum replica count")


def _within_rules(bounds: Bounds) -> Limit:
    """The limit without a behavior: at most double the size, or 4."""
    most = _at_most(bounds.maximum, max(2 * bounds.current, 4))
    if bounds.desired < bounds.minimum:
        return _too_few(bounds.minimum)
    return most if bounds.desired > most.replicas else _fits(bounds.desired)


def _within_rates(bounds: Bounds, history: History, now: float, both: tuple[ScalingRules, ScalingRules]) -> Limit:
    if bounds.desired > bounds.current:
        rate = max(_limit(bounds.current, history, now, both[0], 1), bounds.current)
        most = _at_most(bounds.maximum, rate)
        return most if bounds.desired > most.replicas else _fits(bounds.desired)
    if bounds.desired < bounds.current:
        rate = min(_limit(bounds.current, history, now, both[1], -1), bounds.current)
        text = "the desired replica count is decreasing faster than the maximum scale rate"
        slow = Limit(rate, "ScaleDownLimit", text)
        least = slow if bounds.minimum < rate else _too_few(bounds.minimum)
        return least if bounds.desired < least.replicas else _fits(bounds.desired)
    return _fits(bounds.desired)


def _limit(current: int, history: History, now: float, rules: ScalingRules, sign: int) -> int:
    """The size at which the policies end scaling now, by selectPolicy; ``sign``: 1 for up, -1 for down."""
    if rules.select_policy == "Disabled":
        return current
    proposals = [_proposal(current, history, now, policy, sign) for policy in rules.policies]
    farthest = (rules.select_policy != "Min") == (sign > 0)
    if farthest:
        return max(proposals, default=_LOWEST)
    return min(proposals, default=_HIGHEST)


def _proposal(current: int, history: History, now: float, policy: ScalingPolicy, sign: int) -> int:
    """The limit of one policy, from the size at the start of its period."""
    period = policy.period_seconds
    start = current - sum(_numbers(history.ups, now, period)) + sum(_numbers(history.downs, now, period))
    if policy.type == "Pods":
        return start + sign * policy.value
    if sign > 0:
        return math.ceil(start * (1 + policy.value / 100))
    return int(start * (1 - policy.value / 100))
