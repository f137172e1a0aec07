"""Recreate: no new pod before the last old one is gone.

upstream: pkg/controller/deployment/recreate.go
"""

from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.draft import Draft, active
from kcm_cli.controllers.deployment.plan.revisions import create_new


def recreate(draft: Draft) -> None:
    old = active(draft.old)
    if old:
        for target in old:
            draft.scale(target, 0)
        return
    if _old_pods_run(draft):
        return
    create_new(draft)
    assert draft.new is not None
    if not draft.new.new:
        draft.scale(draft.new, spec.replicas_of(draft.snapshot.deployment))
    draft.cleanup = True


def _old_pods_run(draft: Draft) -> bool:
    if any(target.replica_set.status.replicas > 0 for target in draft.old):
        return True
    new = draft.new.replica_set.uid if draft.new is not None else ""
    return any(count > 0 for uid, count in draft.snapshot.running.items() if uid != new)
