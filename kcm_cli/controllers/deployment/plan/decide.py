"""Which rule applies: deleted, paused, rolled back, scaled, or rolled out by its strategy.

upstream: pkg/controller/deployment/deployment_controller.go#syncDeployment
"""

from datetime import datetime

from kcm_cli.api.apps import DEPLOYMENTS, REPLICA_SETS
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.conditions import found_new, paused_or_resumed
from kcm_cli.controllers.deployment.plan.draft import Draft, Target, creation, updates
from kcm_cli.controllers.deployment.plan.progress import is_complete
from kcm_cli.controllers.deployment.plan.recreate import recreate
from kcm_cli.controllers.deployment.plan.revisions import revision_of, start, sync_revision
from kcm_cli.controllers.deployment.plan.rollback import rollback, rollback_revision
from kcm_cli.controllers.deployment.plan.rolling import roll
from kcm_cli.controllers.deployment.plan.scaling import is_scaling, scale
from kcm_cli.controllers.deployment.snapshot import Snapshot
from kcm_cli.planning.actions import Delete, Emit, Mode, Notice, Plan, Stage, Update, ref_to, stages


def plan(snapshot: Snapshot, now: datetime) -> tuple[Plan, Draft]:
    """The writes for this Deployment's ReplicaSets, and the draft from which its status follows."""
    draft = start(snapshot)
    sync_revision(draft)
    deployment = snapshot.deployment
    wanted = rollback_revision(draft.annotations)
    if not deployment.deleting:
        paused_or_resumed(draft, now)
    found_new(draft, now)
    if deployment.deleting:
        return _plan(draft), draft
    if deployment.spec.paused:
        scale(draft)
        draft.cleanup = wanted is None
    elif wanted is not None:
        rollback(draft, wanted)
    elif is_scaling(draft):
        scale(draft)
    else:
        draft.rollout = True
        if deployment.spec.strategy.type == names.RECREATE:
            recreate(draft)
        else:
            roll(draft)
        draft.cleanup = draft.cleanup and is_complete(deployment, deployment.status)
    if draft.cleanup:
        _clean_up(draft)
    return _plan(draft), draft


def _clean_up(draft: Draft) -> None:
    """Delete the oldest of the emptied ReplicaSets beyond revisionHistoryLimit."""
    limit = spec.history_limit(draft.snapshot.deployment)
    if limit is None:
        return
    alive = [target for target in draft.old if not target.replica_set.deleting]
    alive.sort(key=lambda t: (revision_of(t.replica_set) or 0, t.replica_set.metadata.creation_timestamp or ""))
    for target in alive[: max(0, len(alive) - limit)]:
        replica_set = target.replica_set
        observed = replica_set.metadata.generation <= replica_set.status.observed_generation
        if replica_set.status.replicas == 0 and target.replicas == 0 and not target.changes() and observed:
            draft.deletions.append(replica_set)


def _plan(draft: Draft) -> Plan:
    targets = draft.all()
    notices = {target.name: notice for target in targets if (notice := _scaled(draft, target)) is not None}
    new = draft.new
    create = creation(draft, new, notices.get(new.name)) if new is not None and new.new else None
    rollback_stage = None
    if draft.rollback is not None:
        deployment = draft.snapshot.deployment
        events = tuple(Emit(event) for event in draft.events)
        rollback_stage = Stage((Update(DEPLOYMENTS, deployment, draft.rollback), *events), Mode.SEQUENTIAL)
    deletions = Stage(
        tuple(Delete(REPLICA_SETS, rs.namespace, rs.name, uid=rs.uid) for rs in draft.deletions),
        Mode.SEQUENTIAL,
    )
    return Plan(stages(create, updates(targets, notices), rollback_stage, deletions))


def _scaled(draft: Draft, target: Target) -> Notice | None:
    before, after = (0, target.replicas) if target.new else target.scaled or (0, 0)
    if before == after:
        return None
    direction = "up" if before < after else "down"
    message = f"Scaled {direction} replica set {target.name} from {before} to {after}"
    return Notice(ref_to(DEPLOYMENTS, draft.snapshot.deployment), "Normal", "ScalingReplicaSet", message)
