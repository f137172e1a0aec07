"""What one look at an autoscaler starts from."""

from dataclasses import dataclass

from kcm_cli.api.autoscaling import HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec
from kcm_cli.controllers.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.calculator import Tolerances
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.conditions import SCALED_TO_ZERO
from kcm_cli.machinery.quantity import parse
from kcm_cli.planning.conditions import is_true


@dataclass(frozen=True, slots=True)
class Features:
    """The gates that the controller reads."""

    tolerance: bool
    to_zero: bool
    pod_level: bool


def minimum(spec: HorizontalPodAutoscalerSpec) -> int:
    return 1 if spec.min_replicas is None else spec.min_replicas


def has_outside_metric(spec: HorizontalPodAutoscalerSpec) -> bool:
    """Whether some metric can be read without pods."""
    return any(metric.type in ("Object", "External") for metric in spec.metrics)


def was_scaled_to_zero(hpa: HorizontalPodAutoscaler, features: Features) -> bool:
    """Whether it was this controller that took away the last pod."""
    return features.to_zero and is_true(hpa.status.conditions, SCALED_TO_ZERO)


def tolerances(
    spec: HorizontalPodAutoscalerSpec, config: HorizontalPodAutoscalerConfig, features: Features
) -> Tolerances:
    """Of the autoscaler where it names them (and the gate is on), else the controller's."""
    down = up = config.tolerance
    behavior = spec.behavior
    if features.tolerance and behavior is not None:
        if behavior.scale_down is not None and behavior.scale_down.tolerance is not None:
            down = parse(behavior.scale_down.tolerance).approximate()
        if behavior.scale_up is not None and behavior.scale_up.tolerance is not None:
            up = parse(behavior.scale_up.tolerance).approximate()
    return Tolerances(down, up)
