"""Decides which rule applies to a Deployment: deleted, paused, rolled back, scaled, or rolled out by its strategy.

upstream: pkg/controller/deployment/deployment_controller.go#syncDeployment
"""

from datetime import datetime

from kcm_cli.api.apps import DEPLOYMENTS, REPLICA_SETS
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.revisions import revision_of, start, sync_revision
from kcm_cli.controllers.deployment.plan.rollback import rollback, rollback_revision
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Snapshot, Target, creation, updates
from kcm_cli.controllers.deployment.plan.scaling import is_scaling, scale
from kcm_cli.controllers.deployment.plan.status import found_new, is_complete, paused_or_resumed, renews
from kcm_cli.controllers.deployment.plan.strategies import recreate, roll
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Delete, Mode, Notice, Plan, Stage, Update, ref_to, stages


def plan(snapshot: Snapshot, now: datetime) -> tuple[Plan, Rollout]:
    """The writes to the ReplicaSets, and the rollout that ``status`` continues with.

    Raises SyncError for an unknown strategy.
    """
    rollout = start(snapshot)
    sync_revision(rollout)
    deployment = snapshot.deployment
    wanted = rollback_revision(rollout.annotations)
    if not deployment.deleting:
        paused_or_resumed(rollout, now)
    found_new(rollout, now)
    if deployment.deleting:
        return _plan(rollout), rollout
    if deployment.spec.paused:
        scale(rollout)
        rollout.cleanup = wanted is None
    elif wanted is not None:
        rollback(rollout, wanted)
    elif is_scaling(rollout):
        rollout.counts_later = renews(rollout)
        scale(rollout)
    else:
        rollout.progresses = True
        _roll_out(rollout)
        rollout.cleanup = rollout.cleanup and is_complete(deployment, deployment.status)
    if rollout.cleanup:
        _clean_up(rollout)
    return _plan(rollout), rollout


def _roll_out(rollout: Rollout) -> None:
    strategy = rollout.snapshot.deployment.spec.strategy.type
    if strategy == names.RECREATE:
        recreate(rollout)
    elif strategy == names.ROLLING_UPDATE:
        roll(rollout)
    else:
        raise SyncError(f"unexpected deployment strategy type: {strategy}")


def _clean_up(rollout: Rollout) -> None:
    """Delete the oldest empty ReplicaSets beyond revisionHistoryLimit."""
    limit = spec.history_limit(rollout.snapshot.deployment)
    if limit is None:
        return
    alive = [target for target in rollout.old if not target.replica_set.deleting]
    alive.sort(key=lambda t: (revision_of(t.replica_set) or 0, t.replica_set.metadata.creation_timestamp or ""))
    for target in alive[: max(0, len(alive) - limit)]:
        replica_set = target.replica_set
        observed = replica_set.metadata.generation <= replica_set.status.observed_generation
        if replica_set.status.replicas == 0 and target.replicas == 0 and not target.changes() and observed:
            rollout.deletions.append(replica_set)


def _plan(rollout: Rollout) -> Plan:
    targets = rollout.all()
    notices = {target.name: notice for target in targets if (notice := _scaled(rollout, target)) is not None}
    new = rollout.new
    create = creation(rollout, new, notices.get(new.name)) if new is not None and new.new else None
    rollback_stage = None
    if rollout.rollback is not None:
        deployment = rollout.snapshot.deployment
        back = Update(
            DEPLOYMENTS, deployment, rollout.rollback, done=rollout.rolled_back, reason="rollback was requested"
        )
        rollback_stage = Stage((back,))
    deletions = Stage(
        tuple(
            Delete(REPLICA_SETS, rs.namespace, rs.name, uid=rs.uid, reason="beyond revisionHistoryLimit")
            for rs in rollout.deletions
        ),
        Mode.SEQUENTIAL,
    )
    return stages(create, updates(targets, notices), rollback_stage, deletions)


def _scaled(rollout: Rollout, target: Target) -> Notice | None:
    before, after = (0, target.replicas) if target.new else target.scaled or (0, 0)
    if before == after:
        return None
    direction = "up" if before < after else "down"
    message = f"Scaled {direction} replica set {target.name} from {before} to {after}"
    return Notice(ref_to(DEPLOYMENTS, rollout.snapshot.deployment), "Normal", "ScalingReplicaSet", message)
