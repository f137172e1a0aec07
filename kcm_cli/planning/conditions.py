"""Conditions of a status: found, set, removed.

Two ways of setting them are in use. Controllers of workloads move what changes to the end and look only at status
and reason (``moved``); newer ones and kubelets change it where it stands (``updated``). Both keep the transition
time while the status stays. What is not changed is returned as it came: ``is`` shows whether to write.

upstream: pkg/controller/deployment/util/deployment_util.go#SetDeploymentCondition,
apimachinery pkg/api/meta/conditions.go#SetStatusCondition
"""

import msgspec

from kcm_cli.api.core import Condition

Conditions = tuple[Condition, ...]


def find(conditions: Conditions, type_: str) -> Condition | None:
    """The condition of this type."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def is_true(conditions: Conditions, type_: str) -> bool:
    """Whether there is a condition of this type, and it is True."""
    found = find(conditions, type_)
    return found is not None and found.status == "True"


def moved(conditions: Conditions, new: Condition) -> Conditions:
    """Set a condition at the end; one with the same status and reason is left as it is, whatever its message."""
    current = find(conditions, new.type)
    if current is not None and current.status == new.status:
        if current.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=current.last_transition_time)
    return (*removed(conditions, new.type), new)


def updated(conditions: Conditions, new: Condition) -> Conditions:
    """Set a condition in its place, or at the end; nothing changes while all but its times is the same."""
    current = find(conditions, new.type)
    if current is None:
        return (*conditions, new)
    if current.status == new.status:
        if _content(current) == _content(new):
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=current.last_transition_time)
    return tuple(new if condition is current else condition for condition in conditions)


def removed(conditions: Conditions, type_: str) -> Conditions:
    """Without the conditions of this type."""
    kept = tuple(condition for condition in conditions if condition.type != type_)
    return conditions if len(kept) == len(conditions) else kept


def _content(condition: Condition) -> tuple[str, str, int]:
    return condition.reason, condition.message, condition.observed_generation
