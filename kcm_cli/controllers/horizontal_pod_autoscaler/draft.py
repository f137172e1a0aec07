"""An autoscaler's status while it is being worked out, and the events that tell of it."""

from dataclasses import dataclass, field

import msgspec

from kcm_cli.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS, HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus
from kcm_cli.api.core import Condition
from kcm_cli.controllers.horizontal_pod_autoscaler.metrics import NONE
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.behavior import History, Normalized
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.conditions import ABLE, LIMITED
from kcm_cli.engine.execute import Recorder
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Notice, ref_to
from kcm_cli.planning.conditions import removed, updated


@dataclass(slots=True)
class Draft:
    """``status`` starts as the server has it. ``metrics`` are the statuses of the metrics that were looked at.

    ``done`` is the change of size that was made, as the metrics name it.
    """

    hpa: HorizontalPodAutoscaler
    recorder: Recorder
    now: str
    status: HorizontalPodAutoscalerStatus = field(init=False)
    metrics: list[Doc] | None = None
    history: History = History()
    done: str = NONE

    def __post_init__(self) -> None:
        self.status = self.hpa.status

    def set(self, type_: str, status: str, reason: str, message: str) -> None:
        """Set a condition."""
        new = Condition(type_, status, reason, message, self.now)
        conditions = updated(self.status.conditions, new)
        self.status = msgspec.structs.replace(self.status, conditions=conditions)

    def drop(self, type_: str) -> None:
        """Remove a condition."""
        conditions = removed(self.status.conditions, type_)
        self.status = msgspec.structs.replace(self.status, conditions=conditions)

    def normalized(self, result: Normalized) -> None:
        """What became of the recommendation."""
        self.set(ABLE, "True", result.able.reason, result.able.message)
        self.set(LIMITED, str(result.is_limited), result.limited.reason, result.limited.message)

    def sizes(self, current: int, desired: int, *, rescaled: bool = False) -> None:
        """Everything but the conditions anew."""
        since = self.now if rescaled else self.status.last_scale_time
        conditions = self.status.conditions
        self.status = HorizontalPodAutoscalerStatus(None, since, current, desired, self.metrics or None, conditions)

    def warn(self, reason: str, message: str) -> None:
        self.emit("Warning", reason, message)

    def emit(self, type_: str, reason: str, message: str) -> None:
        ref = ref_to(HORIZONTAL_POD_AUTOSCALERS, self.hpa)
        self.recorder.emit(Notice(ref, type_, reason, message))
