"""Conditions of a Job: appended when they become true, changed where they stand.

upstream: pkg/controller/job/job_controller.go#ensureJobConditionStatus
"""

from datetime import datetime

from kcm_cli.api.core import Condition
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.conditions import Conditions, find


def condition(type_: str, reason: str, message: str, now: datetime, *, status: str = "True") -> Condition:
    """A condition that changes now."""
    time = format_time(now)
    return Condition(type_, status, reason, message, last_transition_time=time, last_probe_time=time)


def ensured(conditions: Conditions, new: Condition) -> Conditions:
    """With this condition; the same object if nothing changes. One that was never there does not become False."""
    current = find(conditions, new.type)
    if current is None:
        return conditions if new.status == "False" else (*conditions, new)
    if (current.status, current.reason, current.message) == (new.status, new.reason, new.message):
        return conditions
    return tuple(new if known is current else known for known in conditions)
