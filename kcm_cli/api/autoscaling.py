"""Views of the autoscaling group."""

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View


class TargetReference(View, frozen=True, gc=False):
    """CrossVersionObjectReference: an object in the same namespace."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricTarget(View, frozen=True, gc=False):
    """The target of a metric. Quantities are text."""

    type: str = ""
    value: str | None = None
    average_value: str | None = None
    average_utilization: int | None = None


class MetricIdentifier(View, frozen=True, gc=False):
    name: str = ""
    selector: LabelSelector | None = None


class MetricSource(View, frozen=True, gc=False):
    """The sources of all metric types; each type uses some of the fields."""

    name: str = ""
    container: str = ""
    metric: MetricIdentifier = MetricIdentifier()
    described_object: TargetReference = TargetReference()
    target: MetricTarget = MetricTarget()


class MetricSpec(View, frozen=True, gc=False):
    type: str = ""
    resource: MetricSource | None = None
    container_resource: MetricSource | None = None
    pods: MetricSource | None = None
    object: MetricSource | None = None
    external: MetricSource | None = None


class ScalingPolicy(View, frozen=True, gc=False):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(View, frozen=True, gc=False):
    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: str | None = None


class Behavior(View, frozen=True, gc=False):
    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HorizontalPodAutoscalerSpec(View, frozen=True, gc=False):
    scale_target_ref: TargetReference = TargetReference()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: tuple[MetricSpec, ...] = ()
    behavior: Behavior | None = None


class HorizontalPodAutoscalerStatus(View, frozen=True, gc=False):
    """``current_metrics`` are documents, since they are written but never read."""

    observed_generation: int | None = None
    last_scale_time: str | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: list[Doc] | None = None
    conditions: tuple[Condition, ...] = ()


class HorizontalPodAutoscaler(Object, frozen=True, gc=False, kw_only=True):
    spec: HorizontalPodAutoscalerSpec = msgspec.field(default_factory=HorizontalPodAutoscalerSpec)
    status: HorizontalPodAutoscalerStatus = msgspec.field(default_factory=HorizontalPodAutoscalerStatus)


HORIZONTAL_POD_AUTOSCALERS = Resource(
    GVR("autoscaling", "v2", "horizontalpodautoscalers"),
    "HorizontalPodAutoscaler",
    HorizontalPodAutoscaler,
    keeps_raw=True,
)


class ScaleSpec(View, frozen=True, gc=False):
    replicas: int = 0


class ScaleStatus(View, frozen=True, gc=False):
    """``selector``: text in autoscaling/v1, labels in extensions/v1beta1, which has the text as ``target_selector``."""

    replicas: int = 0
    selector: str | dict[str, str] = ""
    target_selector: str = ""


class Scale(Object, frozen=True, gc=False, kw_only=True):
    """The scale subresource of any kind: autoscaling/v1 Scale, or extensions/v1beta1 Scale (DeploymentConfigs)."""

    spec: ScaleSpec = msgspec.field(default_factory=ScaleSpec)
    status: ScaleStatus = msgspec.field(default_factory=ScaleStatus)
