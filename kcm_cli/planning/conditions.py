"""Conditions of a status: found, set, removed.

There are two ways of setting them. Controllers of workloads move a changed condition to the end, and compare only
status and reason (``moved``). Newer controllers and kubelets change it in place (``updated``). Both keep the transition
time while the status stays. An unchanged list is returned itself, so that ``is`` shows whether to write.

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
    """Whether the condition of this type is True."""
    found = find(conditions, type_)
    return found is not None and found.status == "True"


def moved(conditions: Conditions, new: Condition) -> Conditions:
    """Set a condition at the end. One with the same status and reason is left as it is, even with another message."""
    current = find(conditions, new.type)
    if current is not None and current.status == new.status:
        if current.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=current.last_transition_time)
    return (*removed(conditions, new.type), new)


def updated(conditions: Conditions, new: Condition) -> Conditions:
    """Set a condition in place, or at the end. Nothing changes if only its times differ."""
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
