"""A Deployment's conditions: set, kept, removed.

upstream: pkg/controller/deployment/util/deployment_util.go#SetDeploymentCondition
"""

from datetime import datetime

import msgspec

from kcm_cli.api.apps import DeploymentStatus
from kcm_cli.api.core import Condition
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.draft import Draft
from kcm_cli.machinery.times import format_time
from kcm_cli.planning import conditions


def condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    time = format_time(now)
    return Condition(type_, status, reason, message, last_transition_time=time, last_update_time=time)


def find(status: DeploymentStatus, type_: str) -> Condition | None:
    return conditions.find(status.conditions, type_)


def put(status: DeploymentStatus, new: Condition) -> DeploymentStatus:
    """Set a condition, at the end; one with the same status and reason is left as it is."""
    return msgspec.structs.replace(status, conditions=conditions.moved(status.conditions, new))


def replace(status: DeploymentStatus, new: Condition) -> DeploymentStatus:
    """Set a condition, at the end, whatever was there."""
    return msgspec.structs.replace(status, conditions=(*remove(status, new.type).conditions, new))


def remove(status: DeploymentStatus, type_: str) -> DeploymentStatus:
    return msgspec.structs.replace(status, conditions=conditions.removed(status.conditions, type_))


def paused_or_resumed(draft: Draft, now: datetime) -> None:
    """While a Deployment is paused its progress is unknown; a deadline that has passed stays reported."""
    deployment = draft.snapshot.deployment
    if spec.deadline_s(deployment) is None:
        return
    current = find(draft.status, names.PROGRESSING)
    if current is not None and current.reason == names.TIMED_OUT:
        return
    was_paused = current is not None and current.reason == names.PAUSED
    if deployment.spec.paused and not was_paused:
        new = condition(names.PROGRESSING, "Unknown", names.PAUSED, "Deployment is paused", now)
        draft.status = put(draft.status, new)
    elif not deployment.spec.paused and was_paused:
        new = condition(names.PROGRESSING, "Unknown", names.RESUMED, "Deployment is resumed", now)
        draft.status = put(draft.status, new)


def found_new(draft: Draft, now: datetime) -> None:
    """Progress is measured from when a ReplicaSet that somebody else made was first seen."""
    if draft.new is None or draft.new.new or draft.new.changes():
        return
    deployment = draft.snapshot.deployment
    if spec.deadline_s(deployment) is not None and find(draft.status, names.PROGRESSING) is None:
        message = f'Found new replica set "{draft.new.name}"'
        draft.status = put(draft.status, condition(names.PROGRESSING, "True", names.FOUND_REPLICA_SET, message, now))
