"""Recreate: no new pod before the last old one is gone.

upstream: pkg/controller/deployment/recreate.go
"""

from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.revisions import create_new
from kcm_cli.controllers.deployment.plan.rollout import Rollout, active


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
