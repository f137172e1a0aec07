"""The conditions of an autoscaler, and its status as a value that decisions add to."""

from datetime import datetime

import msgspec

from kcm_cli.api.autoscaling import HorizontalPodAutoscalerStatus
from kcm_cli.api.core import Condition
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.conditions import removed, updated

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"
Status = HorizontalPodAutoscalerStatus


def with_condition(status: Status, now: datetime, type_: str, state: str, reason: str, message: str) -> Status:
    """Set a condition."""
    conditions = updated(status.conditions, Condition(type_, state, reason, message, format_time(now)))
    return msgspec.structs.replace(status, conditions=conditions)


def without_condition(status: Status, type_: str) -> Status:
    """Remove a condition."""
    return msgspec.structs.replace(status, conditions=removed(status.conditions, type_))


def with_sizes(
    status: Status, current: int, desired: int, metrics: list[Doc], scaled: datetime | None = None
) -> Status:
    """Everything but the conditions anew. scaled: when the size was changed, if it was now."""
    since = status.last_scale_time if scaled is None else format_time(scaled)
    return Status(None, since, current, desired, metrics or None, status.conditions)
