"""Types of the annotations of autoscaling/v1. Values of other types are ignored.

upstream: staging/src/k8s.io/api/autoscaling/v1/types.go, pkg/apis/autoscaling/types.go
"""

from typing import Any, TypeVar

import msgspec

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.quantity import from_json
from kcm_cli.machinery.times import parse_time

T = TypeVar("T")


class _Amount:
    """A quantity."""


class _Time:
    """A timestamp."""


class _Reference(msgspec.Struct, rename="camel"):
    kind: str = ""
    name: str = ""
    api_version: str = ""


class _Source(msgspec.Struct, rename="camel"):
    """The fields of all metric sources and statuses."""

    name: str = ""
    container: str = ""
    metric_name: str = ""
    target: _Reference | None = None
    selector: LabelSelector | None = None
    metric_selector: LabelSelector | None = None
    average_value: _Amount | None = None
    target_value: _Amount | None = None
    target_average_value: _Amount | None = None
    target_average_utilization: int | None = None
    current_value: _Amount | None = None
    current_average_value: _Amount | None = None
    current_average_utilization: int | None = None


class Metric(msgspec.Struct, rename="camel"):
    """A MetricSpec or a MetricStatus."""

    type: str = ""
    object: _Source | None = None
    pods: _Source | None = None
    resource: _Source | None = None
    container_resource: _Source | None = None
    external: _Source | None = None


class _Policy(msgspec.Struct, rename="camel"):
    type: str = ""
    value: int = 0
    period_seconds: int = 0


class _Rules(msgspec.Struct, rename="camel"):
    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: list[_Policy] | None = None
    tolerance: _Amount | None = None


class Behavior(msgspec.Struct, rename="camel"):
    """A HorizontalPodAutoscalerBehavior."""

    scale_up: _Rules | None = None
    scale_down: _Rules | None = None


class Condition(msgspec.Struct, rename="camel"):
    """A HorizontalPodAutoscalerCondition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: _Time | None = None


def has_form(value: Any, form: type[T]) -> bool:
    """Whether a value without nulls has a type. It may have unknown fields."""
    try:
        msgspec.convert(value, form, dec_hook=_read)
    except msgspec.ValidationError:
        return False
    return True


def _read(kind: type, value: Any) -> Any:
    try:
        if kind is _Amount:
            from_json(value)
            return _Amount()
        if kind is _Time:
            parse_time(value)
            return _Time()
    except (FormatError, TypeError) as error:
        raise ValueError(str(error)) from None
    raise TypeError(kind)
