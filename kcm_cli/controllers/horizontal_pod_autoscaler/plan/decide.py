"""Decides on the size of an autoscaler's target.

upstream: pkg/controller/podautoscaler/horizontal.go#reconcileAutoscaler, computeReplicasForMetrics
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from kcm_cli.api.autoscaling import (
    HORIZONTAL_POD_AUTOSCALERS,
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
    Scale,
)
from kcm_cli.api.core import Condition
from kcm_cli.controllers.horizontal_pod_autoscaler.plan import behavior
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.behavior import Bounds
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.calculator import Scope, Timing, Tolerances
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.proposals import MetricFailed, Proposal, Target, propose
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Features, History, Snapshot
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError, SyncError
from kcm_cli.machinery.labels import parse
from kcm_cli.machinery.quantity import parse as parse_quantity
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.conditions import is_true, removed, updated

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"
_BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"


class SyncFailed(SyncError):
    """A sync failed, wholly or in part. It is retried after the sync period."""

    def __init__(self, text: str, *, by_spec: bool = False) -> None:
        super().__init__(text)
        self.by_spec = by_spec


class Rescale(msgspec.Struct, frozen=True):
    """The size of the target (unchanged: nothing is written), and the reason of a change.

    status: the status before the size is written. proposals: the results of the metrics, in the order of the spec.
    failure: the error that ends the sync. settled: the scale could not be read or written, or no size could be
    computed; the status is complete.
    """

    snapshot: Snapshot
    replicas: int
    status: HorizontalPodAutoscalerStatus
    history: History | None = None
    reason: str = ""
    proposals: tuple[Proposal | MetricFailed, ...] = ()
    notices: tuple[Notice, ...] = ()
    failure: SyncFailed | None = None
    settled: bool = False

    @property
    def current(self) -> int:
        """The present size of the target."""
        return self.snapshot.scale.spec.replicas if self.snapshot.scale is not None else 0

    @property
    def hpa(self) -> HorizontalPodAutoscaler:
        return self.snapshot.hpa

    def with_event(self, type_: str, reason: str, message: str) -> "Rescale":
        """The decision with one more Event."""
        notice = Notice(ref_to(HORIZONTAL_POD_AUTOSCALERS, self.hpa), type_, reason, message)
        return replace(self, notices=(*self.notices, notice))

    def with_condition(self, now: datetime, type_: str, state: str, reason: str, message: str) -> "Rescale":
        """The decision with this condition in its status."""
        conditions = updated(self.status.conditions, Condition(type_, state, reason, message, format_time(now)))
        return replace(self, status=msgspec.structs.replace(self.status, conditions=conditions))

    def without_condition(self, type_: str) -> "Rescale":
        """The decision without this condition in its status."""
        conditions = removed(self.status.conditions, type_)
        return replace(self, status=msgspec.structs.replace(self.status, conditions=conditions))

    def with_sizes(self, desired: int, scaled: datetime | None = None) -> "Rescale":
        """The decision with the whole status but the conditions replaced. ``scaled``: the time of a change of size in
        this sync."""
        since = self.status.last_scale_time if scaled is None else format_time(scaled)
        metrics: list[Doc] = [one.status if isinstance(one, Proposal) else {"type": ""} for one in self.proposals]
        conditions = self.status.conditions
        status = HorizontalPodAutoscalerStatus(None, since, self.current, desired, metrics or None, conditions)
        return replace(self, status=status)


def plan(snapshot: Snapshot, now: datetime, at: float) -> Rescale:
    """Decide on the size, by the limits of the spec or by the metrics. ``at``: ``now`` in monotonic seconds."""
    hpa, scale = snapshot.hpa, snapshot.scale
    if scale is None:
        return _unreadable(snapshot, now)
    current, least = scale.spec.replicas, minimum(hpa.spec)
    history = behavior.first_seen(snapshot.history, current, at)
    text = "the HPA controller was able to get the target's current scale"
    start = Rescale(snapshot, current, hpa.status, history)
    start = start.with_condition(now, ABLE, "True", "SucceededGetScale", text)
    if needs_metrics(hpa, scale, snapshot.features):
        return _by_metrics(start, scale, now, at)
    if current != 0:
        if current <= hpa.spec.max_replicas:
            return replace(start, replicas=least, reason=_BELOW_MINIMUM)
        reason = "Current number of replicas above Spec.MaxReplicas"
        return replace(start, replicas=hpa.spec.max_replicas, reason=reason)
    text = "scaling is disabled since the replica count of the target is zero"
    disabled = start.with_condition(now, ACTIVE, "False", "ScalingDisabled", text)
    return disabled if snapshot.features.to_zero else disabled.without_condition(SCALED_TO_ZERO)


def needs_metrics(hpa: HorizontalPodAutoscaler, scale: Scale, features: Features) -> bool:
    """Whether the present size is within the limits of the spec, so that the metrics decide."""
    current = scale.spec.replicas
    if current > hpa.spec.max_replicas:
        return False
    return _may_wake(hpa, features) if current == 0 else current >= minimum(hpa.spec)


def _may_wake(hpa: HorizontalPodAutoscaler, features: Features) -> bool:
    """Whether to scale up a target without replicas: only if this controller scaled it to zero."""
    ours = features.to_zero and is_true(hpa.status.conditions, SCALED_TO_ZERO)
    return ours and (minimum(hpa.spec) != 0 or has_outside_metric(hpa.spec))


def reference(hpa: HorizontalPodAutoscaler) -> str:
    """The target of an autoscaler, as errors show it."""
    ref = hpa.spec.scale_target_ref
    return f"{ref.kind}/{hpa.namespace}/{ref.name}"


def minimum(spec: HorizontalPodAutoscalerSpec) -> int:
    return 1 if spec.min_replicas is None else spec.min_replicas


def has_outside_metric(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Whether some metric can be read without pods."""
    return any(metric.type in ("Object", "External") for metric in spec.metrics)


def _unreadable(snapshot: Snapshot, now: datetime) -> Rescale:
    hpa, error = snapshot.hpa, snapshot.unreadable
    failure = SyncFailed(f"failed to query scale subresource for {reference(hpa)}: {error}", by_spec=snapshot.by_spec)
    text = f"the HPA controller was unable to get the target's current scale: {error}"
    failed = Rescale(snapshot, 0, hpa.status, snapshot.history, failure=failure, settled=True)
    return failed.with_event("Warning", "FailedGetScale", error).with_condition(
        now, ABLE, "False", "FailedGetScale", text
    )


def _by_metrics(start: Rescale, scale: Scale, now: datetime, at: float) -> Rescale:
    """The highest proposal, limited by stabilization, policies and the spec."""
    refused = _unselectable(start, scale.status.target_selector, now)
    if refused is not None:
        return refused
    looked = _proposals(start, scale, now)
    best = _highest(one for one in looked.proposals if isinstance(one, Proposal))
    failed = [one for one in looked.proposals if isinstance(one, MetricFailed)]
    texts = f"({len(failed)} invalid out of {len(start.hpa.spec.metrics)})"
    error = f"invalid metrics {texts}" + (f", first error is: {failed[0]}" if failed else "")
    if best is None or (failed and best.replicas < scale.spec.replicas):
        if failed:
            text = f"the HPA was unable to compute the replica count: {failed[0].message}"
            looked = looked.with_condition(now, ACTIVE, "False", failed[0].reason, text)
        return _uncomputed(looked, error)
    text = f"the HPA was able to successfully calculate a replica count from {best.metric}"
    looked = looked.with_condition(now, ACTIVE, "True", "ValidMetricFound", text)
    return replace(_normalized(looked, best, now, at), failure=SyncFailed(error) if failed else None)


def _unselectable(start: Rescale, text: str, now: datetime) -> Rescale | None:
    """The plan if the target's selector is invalid, or if other autoscalers select the same pods; None otherwise."""
    hpa = start.hpa
    if not text:
        refused = start.with_event("Warning", "SelectorRequired", "selector is required")
        missing = "the HPA target's scale is missing a selector"
        return _uncomputed(
            refused.with_condition(now, ACTIVE, "False", "InvalidSelector", missing), "selector is required"
        )
    try:
        parse(text)
    except FormatError as error:
        reason = "InvalidSelector"
        problem = f"couldn't convert selector into a corresponding internal selector object: {error}"
    else:
        others = start.snapshot.autoscalers
        if len(others) <= 1:
            return None
        reason, listed = "AmbiguousSelector", " ".join(f"{hpa.namespace}/{name}" for name in sorted(others))
        problem = f"pods by selector {text} are controlled by multiple HPAs: [{listed}]"
    refused = start.with_event("Warning", reason, problem).with_condition(now, ACTIVE, "False", reason, problem)
    return _uncomputed(refused, problem)


def _uncomputed(looked: Rescale, error: str) -> Rescale:
    """The plan if no size could be computed."""
    prefix = "failed to compute desired number of replicas based on listed metrics for"
    failure = SyncFailed(f"{prefix} {reference(looked.hpa)}: {error}")
    looked = looked.with_event("Warning", "FailedComputeMetricsReplicas", error)
    return replace(looked.with_sizes(looked.status.desired_replicas), failure=failure, settled=True)


def _proposals(start: Rescale, scale: Scale, now: datetime) -> Rescale:
    """The decision with the proposal of each metric."""
    snapshot, config = start.snapshot, start.snapshot.config
    timing = Timing(now, config.cpu_initialization_period_s, config.initial_readiness_delay_s)
    scope = Scope(scale.spec.replicas, snapshot.pods, tolerances(snapshot), timing)
    target = Target(start.hpa.namespace, scope, scale.status.replicas, snapshot.features.pod_level)
    found: list[Proposal | MetricFailed] = []
    for spec, reading in zip(start.hpa.spec.metrics, snapshot.readings, strict=True):
        try:
            found.append(propose(spec, reading, target))
        except MetricFailed as failed:
            start = start.with_event("Warning", failed.reason, failed.message)
            found.append(failed)
    return replace(start, proposals=tuple(found))


def _highest(proposals: Iterable[Proposal]) -> Proposal | None:
    """The first of the highest proposals. Any proposal that follows one of 0 replaces it."""
    best: Proposal | None = None
    for found in proposals:
        if best is None or best.replicas == 0 or found.replicas > best.replicas:
            best = found
    return best


def tolerances(snapshot: Snapshot) -> Tolerances:
    """The autoscaler's own tolerances if the gate is on, else the controller's."""
    down = up = snapshot.config.tolerance
    own = snapshot.hpa.spec.behavior
    if snapshot.features.tolerance and own is not None:
        if own.scale_down is not None and own.scale_down.tolerance is not None:
            down = parse_quantity(own.scale_down.tolerance).approximate()
        if own.scale_up is not None and own.scale_up.tolerance is not None:
            up = parse_quantity(own.scale_up.tolerance).approximate()
    return Tolerances(down, up)


def _normalized(looked: Rescale, best: Proposal, now: datetime, at: float) -> Rescale:
    """The decision with the proposal, limited by stabilization, policies and the spec."""
    spec, current, desired = looked.hpa.spec, looked.replicas, max(best.replicas, 0)
    reason = ""
    if desired != current:
        reason = f"{best.metric} above target" if desired > current else "All metrics below target"
    bounds = Bounds(current, desired, minimum(spec), spec.max_replicas)
    window_s = looked.snapshot.config.downscale_stabilization_s
    result = behavior.normalized(spec.behavior, bounds, looked.history or History(), at, window_s)
    limited = looked.with_condition(now, ABLE, "True", result.able.reason, result.able.message)
    limited = limited.with_condition(
        now, LIMITED, str(result.is_limited), result.limited.reason, result.limited.message
    )
    size = result.limited.replicas
    if current == 0 and size < bounds.minimum:
        size, reason = bounds.minimum, reason or _BELOW_MINIMUM
    return replace(limited, replicas=size, reason=reason, history=result.history)
