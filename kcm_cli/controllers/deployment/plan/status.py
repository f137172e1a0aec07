"""The status of a Deployment after its plan was executed: counts, conditions, and the time of the next check.

upstream: pkg/controller/deployment/sync.go#calculateStatus, progress.go#syncRolloutStatus,
util/deployment_util.go#SetDeploymentCondition
"""

import math
from collections.abc import Mapping
from datetime import datetime

import msgspec

from kcm_cli.api.apps import Deployment, DeploymentStatus, ReplicaSet
from kcm_cli.api.core import Condition
from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.rollout import Rollout, replicas_in, target_of
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning import conditions
from kcm_cli.planning.actions import Create, Outcome, Update
from kcm_cli.planning.replicas import replicas_of


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


def paused_or_resumed(rollout: Rollout, now: datetime) -> Rollout:
    """The rollout with the condition Progressing of a paused or resumed Deployment. A missed deadline stays there."""
    deployment, current = rollout.snapshot.deployment, find(rollout.status, spec.PROGRESSING)
    if spec.deadline_s(deployment) is None or (current is not None and current.reason == spec.TIMED_OUT):
        return rollout
    was_paused = current is not None and current.reason == spec.PAUSED
    if deployment.spec.paused == was_paused:
        return rollout
    reason, text = (spec.RESUMED, "resumed") if was_paused else (spec.PAUSED, "paused")
    new = condition(spec.PROGRESSING, "Unknown", reason, f"Deployment is {text}", now)
    return msgspec.structs.replace(rollout, status=put(rollout.status, new))


def found_new(rollout: Rollout, now: datetime) -> Rollout:
    """The rollout with the condition Progressing for a ReplicaSet that exists already: its progress is measured from
    now on."""
    if rollout.new is None or rollout.new.changes():
        return rollout
    if spec.deadline_s(rollout.snapshot.deployment) is None or find(rollout.status, spec.PROGRESSING) is not None:
        return rollout
    message = f'Found new replica set "{rollout.new.name}"'
    found = condition(spec.PROGRESSING, "True", spec.FOUND_REPLICA_SET, message, now)
    return msgspec.structs.replace(rollout, status=put(rollout.status, found))


def renews(rollout: Rollout) -> bool:
    """Whether an old ReplicaSet becomes the new one, and the Deployment's annotations or conditions do not show it yet:
    then a rollout begins, also while ReplicaSets are scaled."""
    deployment = rollout.snapshot.deployment
    unfollowed = spec.deadline_s(deployment) is not None and find(rollout.status, spec.PROGRESSING) is None
    unwritten = unfollowed or rollout.annotations != deployment.annotations
    return rollout.new is not None and unwritten and bool(rollout.new.changes())


class Report(msgspec.Struct, frozen=True):
    """The status and the annotations of the Deployment after a sync."""

    status: DeploymentStatus
    annotations: Mapping[str, str]


def status(rollout: Rollout, outcome: Outcome, now: datetime) -> Report | None:
    """What the Deployment says after this outcome, as far as that went; None after a rollback, whose update leads to
    another sync."""
    failure = next((f for f in outcome.failed if isinstance(f.action, Create)), None)
    if failure is not None:
        return Report(_creation_failed(rollout, outcome, failure.error, now), rollout.snapshot.deployment.annotations)
    if rollout.rolls_back and not outcome.failed:
        return None
    written = _written(rollout, outcome)
    base = written.status
    if written.new is not None and written.new.new and spec.deadline_s(written.snapshot.deployment) is not None:
        message = f'Created new replica set "{written.new.name}"'
        created = condition(spec.PROGRESSING, "True", spec.NEW_REPLICA_SET, message, now)
        base = put(base, created)
    new = _counts(written, base, now)
    if written.progresses:
        new = _failures(written, _progress(written, base, new, now))
    return Report(new, written.annotations)


def unobserved(rollout: Rollout, now: datetime) -> Report:
    """The report where nothing could be decided: the counts, for the generation that was observed before."""
    return Report(_counts(rollout, rollout.status, now, observed=False), rollout.annotations)


def _written(rollout: Rollout, outcome: Outcome) -> Rollout:
    """The rollout as far as it was written: ReplicaSets whose update failed keep their size. A revision that the new
    ReplicaSet did not get is not the Deployment's either."""
    unwritten = {action.obj.uid for action in outcome.unwritten if isinstance(action, Update)}
    if not unwritten:
        return rollout
    new, annotations = rollout.new, rollout.annotations
    if new is not None and new.replica_set.uid in unwritten:
        new, annotations = target_of(new.replica_set), rollout.snapshot.deployment.annotations
    old = (target_of(one.replica_set) if one.replica_set.uid in unwritten else one for one in rollout.old)
    return msgspec.structs.replace(rollout, new=new, old=tuple(old), annotations=annotations)


def _creation_failed(rollout: Rollout, outcome: Outcome, error: Exception, now: datetime) -> DeploymentStatus:
    """The status after a failed creation: AlreadyExists counts as a hash collision, any other error is reported. The
    generation was not observed, since the counts do not show its template."""
    missing = rollout.new
    assert missing is not None
    if getattr(error, "reason", "") == "AlreadyExists":
        count = rollout.status.collision_count or 0
        return msgspec.structs.replace(rollout.status, collision_count=count + 1)
    unwritten = msgspec.structs.replace(rollout, new=None, old=_written(rollout, outcome).old)
    new = _counts(unwritten, rollout.status, now, observed=False)
    if spec.deadline_s(rollout.snapshot.deployment) is None:
        return new
    message = f'Failed to create new replica set "{missing.name}": {error}'
    failed = condition(spec.PROGRESSING, "False", spec.CREATE_ERROR, message, now)
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
    if available >= replicas_of(deployment) - spec.max_unavailable(deployment):
        message = "Deployment has minimum availability."
        minimum = condition(spec.AVAILABLE, "True", spec.MINIMUM_AVAILABLE, message, now)
    else:
        message = "Deployment does not have minimum availability."
        minimum = condition(spec.AVAILABLE, "False", spec.MINIMUM_UNAVAILABLE, message, now)
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
    desired = replicas_of(deployment)
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
        return remove(new, spec.PROGRESSING)
    current = find(base, spec.PROGRESSING)
    done = current is not None and current.reason == spec.REPLICA_SET_AVAILABLE
    if done and new.replicas == new.updated_replicas:
        return new
    what = f'ReplicaSet "{rollout.new.name}"' if rollout.new is not None else f'Deployment "{deployment.name}"'
    if is_complete(deployment, new):
        message = f"{what} has successfully progressed."
        reached = condition(spec.PROGRESSING, "True", spec.REPLICA_SET_AVAILABLE, message, now)
        return put(new, reached)
    if _advanced(deployment.status, new):
        message = f"{what} is progressing."
        moving = condition(spec.PROGRESSING, "True", spec.REPLICA_SET_UPDATED, message, now)
        if current is not None and current.status == "True":
            moving = msgspec.structs.replace(moving, last_transition_time=current.last_transition_time)
        return replace(new, moving)
    if _timed_out(deployment, new, now):
        message = f"{what} has timed out progressing."
        late = condition(spec.PROGRESSING, "False", spec.TIMED_OUT, message, now)
        return put(new, late)
    return new


def _timed_out(deployment: Deployment, new: DeploymentStatus, now: datetime) -> bool:
    current = find(new, spec.PROGRESSING)
    deadline = spec.deadline_s(deployment)
    if current is None or deadline is None or current.reason == spec.REPLICA_SET_AVAILABLE:
        return False
    if current.reason == spec.TIMED_OUT:
        return True
    return _age_s(current.last_update_time, now) > deadline


def _age_s(since: str | None, now: datetime) -> float:
    """The seconds since this time; infinite without a time."""
    return math.inf if since is None else (now - parse_time(since)).total_seconds()


def _failures(rollout: Rollout, new: DeploymentStatus) -> DeploymentStatus:
    """The status with the ReplicaFailure condition of a ReplicaSet. The new ReplicaSet takes precedence."""
    first = () if rollout.new is None else (rollout.new,)
    for target in (*first, *rollout.old):
        for found in target.replica_set.status.conditions:
            if found.type == spec.REPLICA_FAILURE:
                return put(new, _taken_over(found))
    return remove(new, spec.REPLICA_FAILURE)


def _taken_over(found: Condition) -> Condition:
    return msgspec.structs.replace(found, last_update_time=found.last_transition_time)


def next_check_s(rollout: Rollout, new: DeploymentStatus, now: datetime) -> float | None:
    """Seconds until the progress deadline may be exceeded; None if no deadline applies."""
    deployment = rollout.snapshot.deployment
    deadline = spec.deadline_s(deployment)
    current = find(deployment.status, spec.PROGRESSING)
    if not rollout.progresses or deadline is None or current is None:
        return None
    if is_complete(deployment, new) or current.reason in (spec.TIMED_OUT, spec.REPLICA_SET_AVAILABLE):
        return None  # what was complete once exceeds no deadline
    return max(0.0, deadline - _age_s(current.last_update_time, now)) + 1.0
