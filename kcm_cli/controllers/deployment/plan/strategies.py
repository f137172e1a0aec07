"""The strategies of a rollout.

Recreate: create new pods when the last old one is deleted. RollingUpdate: scale up the new ReplicaSet within maxSurge,
scale down the old ones within maxUnavailable. A sync does one of the two; scaling up goes first.

upstream: pkg/controller/deployment/recreate.go, rolling.go
"""

from collections.abc import Mapping, Sequence

from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.revisions import create_new, new_size
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Target, active, by_age, replicas_in
from kcm_cli.planning.replicas import replicas_of


def recreate(rollout: Rollout) -> tuple[Rollout, bool]:
    """The next step, and whether there is none."""
    if old := active(rollout.old):
        return rollout.scaled({target.name: 0 for target in old}), False
    if _old_pods_run(rollout):
        return rollout, False
    rollout, desired = create_new(rollout), replicas_of(rollout.snapshot.deployment)
    new = rollout.new
    assert new is not None
    return rollout if new.new or new.replicas == desired else rollout.scaled({new.name: desired}), True


def _old_pods_run(rollout: Rollout) -> bool:
    if any(target.replica_set.status.replicas > 0 for target in rollout.old):
        return True
    new = rollout.new.replica_set.uid if rollout.new is not None else ""
    return any(count > 0 for uid, count in rollout.snapshot.running.items() if uid != new)


def roll(rollout: Rollout) -> tuple[Rollout, bool]:
    """The next step, and whether there is none."""
    rollout = create_new(rollout)
    new = rollout.new
    assert new is not None
    sizes = _grown(rollout, new) or _shrunk(rollout, new)
    return rollout.scaled(sizes), not sizes


def _grown(rollout: Rollout, new: Target) -> Mapping[str, int]:
    """The size of the new ReplicaSet, if it changes."""
    desired = replicas_of(rollout.snapshot.deployment)
    if new.new or new.replicas == desired:
        return {}
    size = desired if new.replicas > desired else new_size(rollout, new.replicas)
    return {} if size == new.replicas else {new.name: size}


def _shrunk(rollout: Rollout, new: Target) -> Mapping[str, int]:
    """The sizes of old ReplicaSets that are scaled down within maxUnavailable: unhealthy pods first, then the oldest
    ReplicaSet first."""
    old = by_age(active(rollout.old))
    deployment = rollout.snapshot.deployment
    minimum = replicas_of(deployment) - spec.max_unavailable(deployment)
    room = replicas_in(rollout.all()) - minimum - (new.replicas - new.available)
    if not old or room <= 0:
        return {}
    healthy = _without_unhealthy(old, room)
    # A size that the ReplicaSet has not observed yet: its status still counts pods that are about to go.
    left = min(new.available, new.replicas) + sum(min(target.available, healthy[target.name]) for target in old)
    sizes = _without(healthy, left - minimum)
    return {target.name: sizes[target.name] for target in old if sizes[target.name] != target.replicas}


def _without_unhealthy(old: Sequence[Target], room: int) -> Mapping[str, int]:
    """The sizes without unavailable pods, of which at most this number go."""
    sizes: dict[str, int] = {}
    for target in old:
        count = max(0, min(room, target.replicas - target.available))
        sizes[target.name] = target.replicas - count
        room -= count
    return sizes


def _without(sizes: Mapping[str, int], room: int) -> Mapping[str, int]:
    """The sizes without this number of pods, or as many as there are."""
    result: dict[str, int] = {}
    for name, size in sizes.items():
        count = max(0, min(room, size))
        result[name] = size - count
        room -= count
    return result
