"""The status of an autoscaler once it is known whether its target could be scaled.

upstream: pkg/controller/podautoscaler/horizontal.go#reconcileAutoscaler, setStatus
"""

from dataclasses import replace
from datetime import datetime

from kcm_cli.controllers.horizontal_pod_autoscaler.plan import behavior
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.conditions import (
    ABLE,
    SCALED_TO_ZERO,
    with_sizes,
    without_condition,
)
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.decide import (
    AutoscalerPlan,
    Failure,
    has_outside_metric,
    minimum,
    notice,
    reference,
)
from kcm_cli.controllers.horizontal_pod_autoscaler.snapshot import History


def status(plan: AutoscalerPlan, error: str, now: datetime) -> AutoscalerPlan:
    """The plan as it was carried out, with its status complete. ``error``: why the target could not be scaled; empty
    if it could, or did not have to be."""
    scale, metrics = plan.snapshot.scale, list(plan.metrics)
    if plan.settled or scale is None:
        return plan
    current, desired = scale.spec.replicas, plan.replicas
    if desired == current:
        return replace(plan, status=with_sizes(plan.status, current, desired, metrics))
    size = f"New size: {desired}; reason: {plan.reason}"
    if error:
        text = f"the HPA controller was unable to update the target scale: {error}"
        failed = plan.with_condition(now, ABLE, "False", "FailedUpdateScale", text)
        failed = failed.warned("FailedRescale", f"{size}; error: {error}")
        sizes = with_sizes(failed.status, current, plan.hpa.status.desired_replicas, metrics)
        failure = Failure(f"failed to rescale {reference(plan.hpa)}: {error}")
        return replace(failed, status=sizes, failure=failure, settled=True)
    text = f"the HPA controller was able to update the target scale to {desired}"
    done = _marked(plan.with_condition(now, ABLE, "True", "SucceededRescale", text), now)
    return replace(
        done,
        status=with_sizes(done.status, current, desired, metrics, now),
        notices=(*done.notices, notice(plan.hpa, "Normal", "SuccessfulRescale", size)),
        history=behavior.scaled(plan.history or History(), plan.hpa.spec.behavior, current, desired, now),
    )


def _marked(plan: AutoscalerPlan, now: datetime) -> AutoscalerPlan:
    """Whether it was this controller that took away the last pod."""
    if not plan.snapshot.features.to_zero:
        return replace(plan, status=without_condition(plan.status, SCALED_TO_ZERO))
    if plan.replicas == 0 and minimum(plan.hpa.spec) == 0 and has_outside_metric(plan.hpa.spec):
        text = "the HPA controller scaled the workload to zero"
        return plan.with_condition(now, SCALED_TO_ZERO, "True", "ScaledToZero", text)
    text = "the HPA controller did not scale the workload to zero"
    return plan.with_condition(now, SCALED_TO_ZERO, "False", "NotScaledToZero", text)
