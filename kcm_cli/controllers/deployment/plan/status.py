"""The status of a Deployment after its plan was executed: counts, conditions, and the time of the next check.

upstream: pkg/controller/deployment/sync.go#calculateStatus, progress.go#syncRolloutStatus,
util/deployment_util.go#SetDeploymentCondition
"""

import math
from datetime import datetime

import msgspec

from kcm_cli.api.apps import Deployment, DeploymentStatus, ReplicaSet
from kcm_cli.api.core import Condition
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.rollout import Rollout, replicas_in
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning import conditions
from kcm_cli.planning.actions import Create, Outcome, Update


def condition(type_: str, status: str, reason: str, message: str, now: datetime) -> Condition:
    time = format_time(now)
    return Condition(type_, status, reason, message, last_transition_time=time, last_update_time=time)


def find(status: DeploymentStatus, type_: str) -> Condition | None:
    return conditions.find(status.conditions, type_)


def put(status: DeploymentStatus, new: Condition) -> DeploymentStatus:
    """Set a condition and move it to the end. One with the same status and reason is kept as it is."""
    return msgspec.structs.replace(status, conditions=conditions.moved(status.conditions, new))


def replace(status: DeploymentStatus, new: Condition) -> DeploymentStatus:
    """Set a condition and move it to the end."""
    return msgspec.structs.replace(status, conditions=(*remove(status, new.type).conditions, new))


def remove(status: DeploymentStatus, type_: str) -> DeploymentStatus:
    return msgspec.structs.replace(status, conditions=conditions.removed(status.conditions, type_))


def paused_or_resumed(rollout: Rollout, now: datetime) -> None:
    """Set the condition Progressing of a paused or resumed Deployment. A missed deadline stays reported."""
    deployment = rollout.snapshot.deployment
    if spec.deadline_s(deployment) is None:
        return
    current = find(rollout.status, names.PROGRESSING)
    if current is not None and current.reason == names.TIMED_OUT:
        return
    was_paused = current is not None and current.reason == names.PAUSED
    if deployment.spec.paused and not was_paused:
        new = condition(names.PROGRESSING, "Unknown", names.PAUSED, "Deployment is paused", now)
        rollout.status = put(rollout.status, new)
    elif not deployment.spec.paused and was_paused:
        new = condition(names.PROGRESSING, "Unknown", names.RESUMED, "Deployment is resumed", now)
        rollout.status = put(rollout.status, new)


def found_new(rollout: Rollout, now: datetime) -> None:
    """Set the condition Progressing for a ReplicaSet that exists already: its progress is measured from now on."""
    if rollout.new is None or rollout.new.new or rollout.new.changes():
        return
    deployment = rollout.snapshot.deployment
    if spec.deadline_s(deployment) is not None and find(rollout.status, names.PROGRESSING) is None:
        message = f'Found new replica set "{rollout.new.name}"'
        found = condition(names.PROGRESSING, "True", names.FOUND_REPLICA_SET, message, now)
        rollout.status = put(rollout.status, found)


def renews(rollout: Rollout) -> bool:
    """Whether an old ReplicaSet becomes the new one, and the Deployment's annotations or conditions do not show it yet.

    Upstream writes the revision to the ReplicaSet and then to the Deployment. Where it scales them as well, its status
    update conflicts, so that the counts are progress only in the next sync.
    """
    deployment = rollout.snapshot.deployment
    unfollowed = spec.deadline_s(deployment) is not None and find(rollout.status, names.PROGRESSING) is None
    unwritten = unfollowed or rollout.annotations != deployment.annotations
    return rollout.new is not None and unwritten and bool(rollout.new.changes())


def status(rollout: Rollout, outcome: Outcome, now: datetime) -> DeploymentStatus | None:
    """The status after this outcome, as far as that went; None after a rollback, whose update leads to another sync."""
    _take_back(rollout, outcome)
    failure = next((f for f in outcome.failed if isinstance(f.action, Create)), None)
    if failure is not None:
        return _creation_failed(rollout, failure.error, now)
    if rollout.rollback is not None and not outcome.failed:
        return None
    base = rollout.status
    if rollout.new is not None and rollout.new.new and spec.deadline_s(rollout.snapshot.deployment) is not None:
        message = f'Created new replica set "{rollout.new.name}"'
        created = condition(names.PROGRESSING, "True", names.NEW_REPLICA_SET, message, now)
        base = put(base, created)
    if rollout.counts_later and not outcome.failed:
        return base
    new = _counts(rollout, base, now)
    if rollout.progresses:
        new = _progress(rollout, base, new, now)
        new = _failures(rollout, new)
    return new


def unobserved(rollout: Rollout, now: datetime) -> DeploymentStatus:
    """The status where nothing could be decided: the counts, for the generation that was observed before."""
    return _counts(rollout, rollout.status, now, observed=False)


def _take_back(rollout: Rollout, outcome: Outcome) -> None:
    """Set the size of each ReplicaSet whose update failed to the present one. A revision that the new ReplicaSet did
    not get is not the Deployment's either."""
    unwritten = {action.obj.uid for action in outcome.unwritten if isinstance(action, Update)}
    for target in rollout.all():
        if target.replica_set.uid in unwritten:
            target.replicas = spec.size_of(target.replica_set)
    new = rollout.new
    if new is not None and new.replica_set.uid in unwritten:
        rollout.annotations = dict(rollout.snapshot.deployment.annotations)


def _creation_failed(rollout: Rollout, error: Exception, now: datetime) -> DeploymentStatus:
    """The status after a failed creation: AlreadyExists counts as a hash collision, any other error is reported. The
    generation was not observed, since the counts do not show its template."""
    rollout.annotations = dict(rollout.snapshot.deployment.annotations)  # nothing has the new revision
    missing, rollout.new = rollout.new, None
    assert missing is not None
    if getattr(error, "reason", "") == "AlreadyExists":
        count = rollout.status.collision_count or 0
        return msgspec.structs.replace(rollout.status, collision_count=count + 1)
    new = unobserved(rollout, now)
    if spec.deadline_s(rollout.snapshot.deployment) is None:
        return new
    message = f'Failed to create new replica set "{missing.name}": {error}'
    failed = condition(names.PROGRESSING, "False", names.CREATE_ERROR, message, now)
    return put(new, failed)


def _counts(rollout: Rollout, base: DeploymentStatus, now: datetime, *, observed: bool = True) -> DeploymentStatus:
    deployment = rollout.snapshot.deployment
    sets = [target.replica_set for target in rollout.all()]
    available = sum(rs.status.available_replicas for rs in sets)
    new = msgspec.structs.replace(
        base,
        observed_generation=deployment.metadata.generation if observed else base.observed_generation,
        replicas=sum(rs.status.replicas for rs in sets),
        updated_replicas=rollout.new.replica_set.status.replicas if rollout.new is not None else 0,
        ready_replicas=sum(rs.status.ready_replicas for rs in sets),
        available_replicas=available,
        unavailable_replicas=max(0, replicas_in(rollout.all()) - available),
        terminating_replicas=_terminating(sets) if rollout.snapshot.reports_terminating else None,
    )
    if available >= spec.replicas_of(deployment) - spec.max_unavailable(deployment):
        message = "Deployment has minimum availability."
        minimum = condition(names.AVAILABLE, "True", names.MINIMUM_AVAILABLE, message, now)
    else:
        message = "Deployment does not have minimum availability."
        minimum = condition(names.AVAILABLE, "False", names.MINIMUM_UNAVAILABLE, message, now)
    return put(new, minimum)


def _terminating(sets: list[ReplicaSet]) -> int | None:
    """The sum of terminatingReplicas; None if an observed ReplicaSet does not report it."""
    total = 0
    for replica_set in sets:
        count = replica_set.status.terminating_replicas
        if count is None and replica_set.status.observed_generation != 0:
            return None
        total += count or 0
    return total


def is_complete(deployment: Deployment, new: DeploymentStatus) -> bool:
    """Whether a status says that the rollout is complete."""
    desired = spec.replicas_of(deployment)
    return (
        new.updated_replicas == new.replicas == new.available_replicas == desired
        and new.observed_generation >= deployment.metadata.generation
    )


def _advanced(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    """Whether there are more new pods, fewer old ones, or more that are ready or available."""
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _progress(rollout: Rollout, base: DeploymentStatus, new: DeploymentStatus, now: datetime) -> DeploymentStatus:
    deployment = rollout.snapshot.deployment
    if spec.deadline_s(deployment) is None:
        return remove(new, names.PROGRESSING)
    current = find(base, names.PROGRESSING)
    done = current is not None and current.reason == names.REPLICA_SET_AVAILABLE
    if done and new.replicas == new.updated_replicas:
        return new
    what = f'ReplicaSet "{rollout.new.name}"' if rollout.new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, new):
        message = f"{what} has successfully progressed."
        reached = condition(names.PROGRESSING, "True", names.REPLICA_SET_AVAILABLE, message, now)
        return put(new, reached)
    if _advanced(deployment.status, new):
        message = f"{what} is progressing."
        moving = condition(names.PROGRESSING, "True", names.REPLICA_SET_UPDATED, message, now)
        if current is not None and current.status == "True":
            moving = msgspec.structs.replace(moving, last_transition_time=current.last_transition_time)
        return replace(new, moving)
    if _timed_out(deployment, new, now):
        message = f"{what} has timed out progressing."
        late = condition(names.PROGRESSING, "False", names.TIMED_OUT, message, now)
        return put(new, late)
    return new


def _timed_out(deployment: Deployment, new: DeploymentStatus, now: datetime) -> bool:
    current = find(new, names.PROGRESSING)
    deadline = spec.deadline_s(deployment)
    if current is None or deadline is None or current.reason == names.REPLICA_SET_AVAILABLE:
        return False
    if current.reason == names.TIMED_OUT:
        return True
    return _age_s(current.last_update_time, now) > deadline


def _age_s(since: str | None, now: datetime) -> float:
    """The seconds since this time; infinite without a time."""
    return math.inf if since is None else (now - parse_time(since)).total_seconds()


def _failures(rollout: Rollout, new: DeploymentStatus) -> DeploymentStatus:
    """The status with the ReplicaFailure condition of a ReplicaSet. The new ReplicaSet takes precedence."""
    targets = [rollout.new] if rollout.new is not None else []
    for target in (*targets, *rollout.all()):
        for found in target.replica_set.status.conditions:
            if found.type == names.REPLICA_FAILURE:
                return put(new, _taken_over(found))
    return remove(new, names.REPLICA_FAILURE)


def _taken_over(found: Condition) -> Condition:
    return msgspec.structs.replace(found, last_update_time=found.last_transition_time)


def next_check_s(rollout: Rollout, new: DeploymentStatus, now: datetime) -> float | None:
    """Seconds until the progress deadline may be exceeded; None if no deadline applies."""
    deployment = rollout.snapshot.deployment
    deadline = spec.deadline_s(deployment)
    current = find(deployment.status, names.PROGRESSING)
    if not rollout.progresses or deadline is None or current is None:
        return None
    if is_complete(deployment, new) or current.reason == names.TIMED_OUT:
        return None
    return max(0.0, deadline - _age_s(current.last_update_time, now)) + 1.0
