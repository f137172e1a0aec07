"""Decides which rule applies to a Deployment: deleted, paused, rolled back, scaled, or rolled out by its strategy.

upstream: pkg/controller/deployment/deployment_controller.go#syncDeployment
"""

from collections.abc import Iterator
from datetime import datetime

from msgspec.structs import replace

from kcm_cli.api.apps import DEPLOYMENTS, REPLICA_SETS
from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.revisions import (
    altered,
    body_of,
    create_new,
    revision_of,
    start,
    sync_revision,
)
from kcm_cli.controllers.deployment.plan.rollback import rollback, rollback_revision
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Snapshot, Target
from kcm_cli.controllers.deployment.plan.scaling import is_scaling, scale
from kcm_cli.controllers.deployment.plan.status import found_new, is_complete, paused_or_resumed, renews
from kcm_cli.controllers.deployment.plan.strategies import recreate, roll
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Create, Delete, Mode, Notice, Stage, Update, ref_to, stages


def plan(snapshot: Snapshot, now: datetime) -> Rollout:
    """Decide about the ReplicaSets. Raises SyncError for an unknown strategy."""
    rollout = sync_revision(start(snapshot))
    deployment = snapshot.deployment
    if deployment.deleting:
        return _with_stages(found_new(rollout, now))
    rollout = found_new(paused_or_resumed(rollout, now), now)
    wanted = rollback_revision(deployment.annotations)
    if deployment.spec.paused:
        return _with_stages(scale(rollout), cleans_up=wanted is None)
    if wanted is not None:
        rollout = create_new(rollout)
        if rollout.new is not None and rollout.new.new:
            return _with_stages(rollout)  # the status shows the creation first; the next sync rolls back
        return _with_stages(replace(rollout, rolls_back=True), rollback(rollout, wanted))
    if is_scaling(rollout):
        return _with_stages(scale(replace(rollout, progresses=renews(rollout))))
    rollout, through = _roll_out(replace(rollout, progresses=True))
    return _with_stages(rollout, cleans_up=through and is_complete(deployment, deployment.status))


def _roll_out(rollout: Rollout) -> tuple[Rollout, bool]:
    strategy = rollout.snapshot.deployment.spec.strategy.type
    if strategy == spec.RECREATE:
        return recreate(rollout)
    if strategy == spec.ROLLING_UPDATE:
        return roll(rollout)
    raise SyncError(f"unexpected deployment strategy type: {strategy}")


def _with_stages(rollout: Rollout, back: Update | None = None, *, cleans_up: bool = False) -> Rollout:
    """The rollout with its writes: to the ReplicaSets, then the rollback, then deletions beyond the history limit."""
    new = rollout.new
    parts = (
        Stage((_creation(rollout, new),)) if new is not None and new.new else None,
        Stage(tuple(_updates(rollout))),
        Stage((back,)) if back is not None else None,
        Stage(_surplus(rollout), Mode.SEQUENTIAL) if cleans_up else None,
    )
    return replace(rollout, stages=stages(*parts))


def _creation(rollout: Rollout, new: Target) -> Create:
    done = _notice(rollout, new, 0, new.replicas)
    namespace, body = rollout.snapshot.deployment.namespace, body_of(rollout.snapshot.deployment, new)
    return Create(REPLICA_SETS, namespace, body, done=done, reason="no ReplicaSet has the template")


def _updates(rollout: Rollout) -> Iterator[Update]:
    """One update for each changed ReplicaSet, with its scaling Event."""
    for target in rollout.all():
        changes = {} if target.new else target.changes()
        if not changes:
            continue
        before, after, done, reason = target.scaled_from, target.replicas, None, "annotations changed"
        if before is not None:
            done, reason = _notice(rollout, target, before, after), f"scaled from {before} to {after}"
        yield Update(REPLICA_SETS, target.replica_set, changes, done=done, reason=reason)


def _notice(rollout: Rollout, target: Target, before: int, after: int) -> Notice | None:
    if before == after:
        return None
    direction = "up" if before < after else "down"
    message = f"Scaled {direction} replica set {target.name} from {before} to {after}"
    return Notice(ref_to(DEPLOYMENTS, rollout.snapshot.deployment), "Normal", "ScalingReplicaSet", message)


def _surplus(rollout: Rollout) -> tuple[Delete, ...]:
    """Deletions of the oldest empty ReplicaSets beyond revisionHistoryLimit. Those that tell that admission alters the
    template are kept."""
    deployment = rollout.snapshot.deployment
    limit = spec.history_limit(deployment)
    if limit is None:
        return ()
    telling = altered(deployment, rollout.all())
    alive = [target for target in rollout.old if not target.replica_set.deleting and target not in telling]
    alive.sort(key=lambda t: (revision_of(t.replica_set) or 0, t.replica_set.metadata.creation_timestamp or ""))
    return tuple(
        Delete(REPLICA_SETS, one.namespace, one.name, uid=one.uid, reason="beyond revisionHistoryLimit")
        for target in alive[: max(0, len(alive) - limit)]
        if _is_empty(target)
        for one in (target.replica_set,)
    )


def _is_empty(target: Target) -> bool:
    """Whether a ReplicaSet has no pods, and has observed that it is to have none."""
    one = target.replica_set
    observed = one.metadata.generation <= one.status.observed_generation
    return one.status.replicas == 0 and target.replicas == 0 and not target.changes() and observed
