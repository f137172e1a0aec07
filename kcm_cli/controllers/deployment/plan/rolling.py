"""RollingUpdate: grow the new ReplicaSet within maxSurge, shrink the old ones within maxUnavailable.

One direction a sync: while the new one can still grow the old ones are left alone.

upstream: pkg/controller/deployment/rolling.go
"""

from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.draft import Draft, Target, active, by_age, replicas_in
from kcm_cli.controllers.deployment.plan.revisions import create_new, initial_size


def roll(draft: Draft) -> None:
    create_new(draft)
    if _grow(draft):
        return
    if _shrink(draft):
        return
    draft.cleanup = True


def _grow(draft: Draft) -> bool:
    target = draft.new
    assert target is not None
    desired = spec.replicas_of(draft.snapshot.deployment)
    if target.new or target.replicas == desired:
        return False
    if target.replicas > desired:
        return draft.scale(target, desired)
    return draft.scale(target, initial_size(draft))


def _shrink(draft: Draft) -> bool:
    """Take from the old ones what availability permits: unhealthy pods first, then oldest ReplicaSet first."""
    assert draft.new is not None
    old = by_age(active(draft.old))
    if not old:
        return False
    deployment = draft.snapshot.deployment
    minimum = spec.replicas_of(deployment) - spec.max_unavailable(deployment)
    unready = draft.new.replicas - draft.new.available
    room = replicas_in(draft.all()) - minimum - unready
    if room <= 0:
        return False
    cleaned = _take_unhealthy(draft, old, room)
    removed = _take_available(draft, old, minimum)
    return cleaned + removed > 0


def _take_unhealthy(draft: Draft, old: list[Target], room: int) -> int:
    taken = 0
    for target in old:
        if taken >= room:
            break
        unhealthy = target.replicas - target.available
        if target.replicas == 0 or unhealthy <= 0:
            continue
        count = min(room - taken, unhealthy)
        draft.scale(target, target.replicas - count)
        taken += count
    return taken


def _take_available(draft: Draft, old: list[Target], minimum: int) -> int:
    assert draft.new is not None
    # A size that the ReplicaSet has not observed yet: its status still counts pods that are about to go.
    room = sum(min(target.available, target.replicas) for target in [*old, draft.new]) - minimum
    taken = 0
    for target in old:
        if taken >= room:
            break
        count = min(target.replicas, room - taken)
        if count > 0:
            draft.scale(target, target.replicas - count)
            taken += count
    return taken
