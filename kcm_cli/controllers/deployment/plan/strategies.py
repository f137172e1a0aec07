"""The strategies of a rollout.

Recreate: create new pods when the last old one is deleted. RollingUpdate: scale up the new ReplicaSet within maxSurge,
scale down the old ones within maxUnavailable. A sync does one of the two; scaling up goes first.

upstream: pkg/controller/deployment/recreate.go, rolling.go
"""

from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.revisions import create_new, initial_size
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Target, active, by_age, replicas_in


def recreate(rollout: Rollout) -> None:
    old = active(rollout.old)
    if old:
        for target in old:
            rollout.scale(target, 0)
        return
    if _old_pods_run(rollout):
        return
    create_new(rollout)
    assert rollout.new is not None
    if not rollout.new.new:
        rollout.scale(rollout.new, spec.replicas_of(rollout.snapshot.deployment))
    rollout.cleanup = True


def _old_pods_run(rollout: Rollout) -> bool:
    if any(target.replica_set.status.replicas > 0 for target in rollout.old):
        return True
    new = rollout.new.replica_set.uid if rollout.new is not None else ""
    return any(count > 0 for uid, count in rollout.snapshot.running.items() if uid != new)


def roll(rollout: Rollout) -> None:
    create_new(rollout)
    if _grow(rollout):
        return
    if _shrink(rollout):
        return
    rollout.cleanup = True


def _grow(rollout: Rollout) -> bool:
    target = rollout.new
    assert target is not None
    desired = spec.replicas_of(rollout.snapshot.deployment)
    if target.new or target.replicas == desired:
        return False
    if target.replicas > desired:
        return rollout.scale(target, desired)
    return rollout.scale(target, initial_size(rollout))


def _shrink(rollout: Rollout) -> bool:
    """Scale down old ReplicaSets within maxUnavailable: unhealthy pods first, then the oldest ReplicaSet first."""
    assert rollout.new is not None
    old = by_age(active(rollout.old))
    if not old:
        return False
    deployment = rollout.snapshot.deployment
    minimum = spec.replicas_of(deployment) - spec.max_unavailable(deployment)
    unready = rollout.new.replicas - rollout.new.available
    room = replicas_in(rollout.all()) - minimum - unready
    if room <= 0:
        return False
    cleaned = _take_unhealthy(rollout, old, room)
    removed = _take_available(rollout, old, minimum)
    return cleaned + removed > 0


def _take_unhealthy(rollout: Rollout, old: list[Target], room: int) -> int:
    taken = 0
    for target in old:
        if taken >= room:
            break
        unhealthy = target.replicas - target.available
        if target.replicas == 0 or unhealthy <= 0:
            continue
        count = min(room - taken, unhealthy)
        rollout.scale(target, target.replicas - count)
        taken += count
    return taken


def _take_available(rollout: Rollout, old: list[Target], minimum: int) -> int:
    assert rollout.new is not None
    # A size that the ReplicaSet has not observed yet: its status still counts pods that are about to go.
    room = sum(min(target.available, target.replicas) for target in [*old, rollout.new]) - minimum
    taken = 0
    for target in old:
        if taken >= room:
            break
        count = min(target.replicas, room - taken)
        if count > 0:
            rollout.scale(target, target.replicas - count)
            taken += count
    return taken
