"""The status of an autoscaler after its target was scaled.

upstream: pkg/controller/podautoscaler/horizontal.go#reconcileAutoscaler, setStatus
"""

from datetime import datetime

from msgspec.structs import replace

from kcm_cli.controllers.horizontal_pod_autoscaler.plan import behavior
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.decide import (
    ABLE,
    SCALED_TO_ZERO,
    Rescale,
    SyncFailed,
    has_outside_metric,
    minimum,
    reference,
)
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import History


def status(plan: Rescale, error: str, now: datetime, at: float) -> Rescale:
    """The executed plan with its complete status. ``error``: why the target could not be scaled; empty if it was scaled
    or did not have to be. ``at``: ``now`` in monotonic seconds."""
    current, desired = plan.current, plan.replicas
    if plan.settled:
        return plan
    if desired == current:
        return plan.with_sizes(desired)
    size = f"New size: {desired}; reason: {plan.reason}"
    if error:
        text = f"the HPA controller was unable to update the target scale: {error}"
        failed = plan.with_condition(now, ABLE, "False", "FailedUpdateScale", text)
        failed = failed.with_event("Warning", "FailedRescale", f"{size}; error: {error}")
        failure = SyncFailed(f"failed to rescale {reference(plan.hpa)}: {error}")
        return replace(failed.with_sizes(plan.hpa.status.desired_replicas), failure=failure, settled=True)
    text = f"the HPA controller was able to update the target scale to {desired}"
    done = _marked(plan.with_condition(now, ABLE, "True", "SucceededRescale", text), now)
    history = behavior.scaled(plan.history or History(), plan.hpa.spec.behavior, current, desired, at)
    return replace(done.with_sizes(desired, now).with_event("Normal", "SuccessfulRescale", size), history=history)


def _marked(plan: Rescale, now: datetime) -> Rescale:
    """The plan with the condition that says whether this controller scaled the target to zero."""
    if not plan.snapshot.features.to_zero:
        return plan.without_condition(SCALED_TO_ZERO)
    if plan.replicas == 0 and minimum(plan.hpa.spec) == 0 and has_outside_metric(plan.hpa.spec):
        text = "the HPA controller scaled the workload to zero"
        return plan.with_condition(now, SCALED_TO_ZERO, "True", "ScaledToZero", text)
    text = "the HPA controller did not scale the workload to zero"
    return plan.with_condition(now, SCALED_TO_ZERO, "False", "NotScaledToZero", text)
