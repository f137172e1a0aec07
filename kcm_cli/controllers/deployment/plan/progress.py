"""The status of a Deployment after its plan was carried out, and when to look again.

upstream: pkg/controller/deployment/sync.go#calculateStatus, progress.go#syncRolloutStatus
"""

import math
from datetime import datetime

import msgspec

from kcm_cli.api.apps import Deployment, DeploymentStatus, ReplicaSet
from kcm_cli.api.core import Condition
from kcm_cli.controllers.deployment.plan import conditions as conds
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.draft import Draft, replicas_in
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.actions import Create, Outcome


def status(draft: Draft, outcome: Outcome, now: datetime) -> DeploymentStatus | None:
    """The status to have after this outcome; None if a failure leaves it as it was."""
    draft_status = draft.status
    failure = next((f for f in outcome.failed if isinstance(f.action, Create)), None)
    if failure is not None:
        return _creation_failed(draft, failure.error, now)
    if outcome.failed or draft.rollback is not None:
        return None
    if draft.new is not None and draft.new.new and spec.deadline_s(draft.snapshot.deployment) is not None:
        message = f'Created new replica set "{draft.new.name}"'
        created = conds.condition(names.PROGRESSING, "True", names.NEW_REPLICA_SET, message, now)
        draft_status = conds.put(draft_status, created)
    new = _counts(draft, draft_status, now)
    if draft.rollout:
        new = _progress(draft, draft_status, new, now)
        new = _failures(draft, new)
    return new


def _creation_failed(draft: Draft, error: Exception, now: datetime) -> DeploymentStatus | None:
    """A name that is taken is a hash collision: the next sync makes another. Anything else is reported."""
    assert draft.new is not None
    if getattr(error, "reason", "") == "AlreadyExists":
        count = draft.status.collision_count or 0
        return msgspec.structs.replace(draft.status, collision_count=count + 1)
    if spec.deadline_s(draft.snapshot.deployment) is None:
        return None
    message = f'Failed to create new replica set "{draft.new.name}": {error}'
    failed = conds.condition(names.PROGRESSING, "False", names.CREATE_ERROR, message, now)
    return conds.put(draft.status, failed)


def _counts(draft: Draft, base: DeploymentStatus, now: datetime) -> DeploymentStatus:
    deployment = draft.snapshot.deployment
    sets = [target.replica_set for target in draft.all()]
    available = sum(rs.status.available_replicas for rs in sets)
    new = msgspec.structs.replace(
        base,
        observed_generation=deployment.metadata.generation,
        replicas=sum(rs.status.replicas for rs in sets),
        updated_replicas=draft.new.replica_set.status.replicas if draft.new is not None else 0,
        ready_replicas=sum(rs.status.ready_replicas for rs in sets),
        available_replicas=available,
        unavailable_replicas=max(0, replicas_in(draft.all()) - available),
        terminating_replicas=_terminating(sets) if draft.snapshot.reports_terminating else None,
    )
    if available >= spec.replicas_of(deployment) - spec.max_unavailable(deployment):
        message = "Deployment has minimum availability."
        minimum = conds.condition(names.AVAILABLE, "True", names.MINIMUM_AVAILABLE, message, now)
    else:
        message = "Deployment does not have minimum availability."
        minimum = conds.condition(names.AVAILABLE, "False", names.MINIMUM_UNAVAILABLE, message, now)
    return conds.put(new, minimum)


def _terminating(sets: list[ReplicaSet]) -> int | None:
    """Their sum; unknown if a ReplicaSet that has been synced does not report it."""
    total = 0
    for replica_set in sets:
        count = replica_set.status.terminating_replicas
        if count is None and replica_set.status.observed_generation != 0:
            return None
        total += count or 0
    return total


def is_complete(deployment: Deployment, new: DeploymentStatus) -> bool:
    """Whether a status says that the rollout is done."""
    desired = spec.replicas_of(deployment)
    return (
        new.updated_replicas == new.replicas == new.available_replicas == desired
        and new.observed_generation >= deployment.metadata.generation
    )


def _advanced(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    """More new pods, fewer old ones, or more of them ready or available."""
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _progress(draft: Draft, base: DeploymentStatus, new: DeploymentStatus, now: datetime) -> DeploymentStatus:
    deployment = draft.snapshot.deployment
    if spec.deadline_s(deployment) is None:
        return conds.remove(new, names.PROGRESSING)
    current = conds.find(base, names.PROGRESSING)
    done = current is not None and current.reason == names.REPLICA_SET_AVAILABLE
    if done and new.replicas == new.updated_replicas:
        return new
    what = f'ReplicaSet "{draft.new.name}"' if draft.new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, new):
        message = f"{what} has successfully progressed."
        reached = conds.condition(names.PROGRESSING, "True", names.REPLICA_SET_AVAILABLE, message, now)
        return conds.put(new, reached)
    if _advanced(deployment.status, new):
        message = f"{what} is progressing."
        moving = conds.condition(names.PROGRESSING, "True", names.REPLICA_SET_UPDATED, message, now)
        if current is not None and current.status == "True":
            moving = msgspec.structs.replace(moving, last_transition_time=current.last_transition_time)
        return conds.replace(new, moving)
    if _timed_out(deployment, new, now):
        message = f"{what} has timed out progressing."
        late = conds.condition(names.PROGRESSING, "False", names.TIMED_OUT, message, now)
        return conds.put(new, late)
    return new


def _timed_out(deployment: Deployment, new: DeploymentStatus, now: datetime) -> bool:
    current = conds.find(new, names.PROGRESSING)
    deadline = spec.deadline_s(deployment)
    if current is None or deadline is None or current.reason == names.REPLICA_SET_AVAILABLE:
        return False
    if current.reason == names.TIMED_OUT:
        return True
    return _age_s(current.last_update_time, now) > deadline


def _age_s(since: str | None, now: datetime) -> float:
    """What was never updated was updated long ago."""
    return math.inf if since is None else (now - parse_time(since)).total_seconds()


def _failures(draft: Draft, new: DeploymentStatus) -> DeploymentStatus:
    """Show one ReplicaSet's failure, that of the new one before any other."""
    targets = [draft.new] if draft.new is not None else []
    for target in (*targets, *draft.all()):
        for found in target.replica_set.status.conditions:
            if found.type == names.REPLICA_FAILURE:
                return conds.put(new, _taken_over(found))
    return conds.remove(new, names.REPLICA_FAILURE)


def _taken_over(found: Condition) -> Condition:
    return msgspec.structs.replace(found, last_update_time=found.last_transition_time)


def next_check_s(draft: Draft, new: DeploymentStatus, now: datetime) -> float | None:
    """Seconds until the rollout may have missed its deadline; None if there is nothing to wait for."""
    deployment = draft.snapshot.deployment
    deadline = spec.deadline_s(deployment)
    current = conds.find(deployment.status, names.PROGRESSING)
    if not draft.rollout or deadline is None or current is None:
        return None
    if is_complete(deployment, new) or current.reason == names.TIMED_OUT:
        return None
    return max(0.0, deadline - _age_s(current.last_update_time, now)) + 1.0
