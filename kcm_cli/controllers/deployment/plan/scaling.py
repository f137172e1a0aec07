"""Scales a Deployment outside a rollout step, in proportion over its ReplicaSets.

upstream: pkg/controller/deployment/sync.go#scale
"""

from collections.abc import Mapping

from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Target, active, by_age, replicas_in
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.replicas import replicas_of


def is_scaling(rollout: Rollout) -> bool:
    """Whether spec.replicas changed since the active ReplicaSets were last annotated.

    With Recreate, several of them are no matter of scaling, but of the rollout: upstream does neither, for ever.
    """
    deployment, running = rollout.snapshot.deployment, active(rollout.all())
    if len(running) > 1 and not spec.rolling(deployment):
        return False
    desired = replicas_of(deployment)
    return any(_was_for_another_size(target, desired) for target in running)


def scale(rollout: Rollout) -> Rollout:
    """Scale the only active ReplicaSet, or all of them in proportion during a rolling update."""
    deployment = rollout.snapshot.deployment
    desired = replicas_of(deployment)
    only = _active_or_latest(rollout)
    if only is not None:
        # Upstream keeps the annotation with the earlier size here, and takes the Deployment for being scaled for ever.
        noted = not _was_for_another_size(only, desired)
        return rollout if only.replicas == desired and noted else rollout.scaled({only.name: desired})
    if _saturated(rollout):
        return rollout.scaled({target.name: 0 for target in active(rollout.old)})
    return rollout.scaled(_proportions(rollout, desired)) if spec.rolling(deployment) else rollout


def _was_for_another_size(target: Target, desired: int) -> bool:
    """Whether the ReplicaSet's annotation has another value of spec.replicas."""
    noted = _number(target, spec.DESIRED_REPLICAS)
    return noted is not None and noted != desired


def _active_or_latest(rollout: Rollout) -> Target | None:
    running = active(rollout.all())
    if len(running) > 1:
        return None
    if running:
        return running[0]
    if rollout.new is not None:
        return rollout.new
    return by_age(rollout.old)[-1] if rollout.old else None


def _saturated(rollout: Rollout) -> bool:
    """Whether the new ReplicaSet has all the Deployment's pods, and all of them are available."""
    target = rollout.new
    desired = replicas_of(rollout.snapshot.deployment)
    return (
        target is not None
        and target.replicas == desired
        and _number(target, spec.DESIRED_REPLICAS) == desired
        and target.available == desired
    )


def _proportions(rollout: Rollout, desired: int) -> Mapping[str, int]:
    """The sizes of all active ReplicaSets."""
    targets = active(rollout.all())
    allowed = spec.most_pods(rollout.snapshot.deployment) if desired > 0 else 0
    to_add = allowed - replicas_in(targets)
    # Growing prefers the newer of two equal ones, shrinking the older.
    targets.sort(key=lambda t: (t.replica_set.metadata.creation_timestamp or "", t.name), reverse=to_add > 0)
    targets.sort(key=lambda t: -t.replicas)
    sizes: dict[str, int] = {}
    added = 0
    for target in targets:
        share = _share(rollout, target, to_add, added)
        sizes[target.name] = target.replicas + share
        added += share
    if targets and to_add != 0:
        largest = targets[0].name
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _share(rollout: Rollout, target: Target, to_add: int, added: int) -> int:
    """The ReplicaSet's share of the pods to add (negative: to remove), at most what is left."""
    if target.replicas == 0 or to_add in (0, added):
        return 0
    left = to_add - added
    fraction = _fraction(rollout, target)
    return min(fraction, left) if to_add > 0 else max(fraction, left)


def _fraction(rollout: Rollout, target: Target) -> int:
    deployment = rollout.snapshot.deployment
    desired = replicas_of(deployment)
    if desired == 0:
        return -target.replicas
    before = _number(target, spec.MAX_REPLICAS) or deployment.status.replicas
    if before == 0:
        return 0
    size = target.replicas * spec.most_pods(deployment) / before
    return _round(size) - target.replicas


def _round(value: float) -> int:
    """Round half away from zero, as Go's RoundToInt32."""
    return int(value - 0.5) if value < 0 else int(value + 0.5)


def _number(target: Target, annotation: str) -> int | None:
    text = target.annotations.get(annotation)
    if text is None or not text.isascii() or not text.isdigit():
        return None
    number = parse_int64(text)
    return number if number is not None and number <= spec.MAX_INT32 else None
