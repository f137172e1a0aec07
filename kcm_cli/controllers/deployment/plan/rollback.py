"""The deprecated rollback annotation: restores the template of an earlier revision.

upstream: pkg/controller/deployment/rollback.go
"""

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.revisions import create_new, last_revision, revision_in
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Target
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.actions import ABSENT, Notice, Path, Value, ref_to


def rollback_revision(annotations: dict[str, str]) -> int | None:
    """The requested revision (0: the previous one); None if no rollback is requested."""
    text = annotations.get(names.ROLLBACK_TO, "")
    return parse_int64(text)


def rollback(rollout: Rollout, revision: int) -> None:
    """Restore the template and the annotations of the revision. The annotation with the request is removed in any
    case."""
    create_new(rollout)
    assert rollout.new is not None
    if rollout.new.new:
        rollout.counts_later = True  # its creation is recorded in the status first; the next sync rolls back
        return
    known = rollout.all()
    annotations = {key: value for key, value in rollout.annotations.items() if key != names.ROLLBACK_TO}
    wanted = revision or last_revision(target.annotations for target in known)
    found = next((target for target in known if revision_in(target.annotations) == wanted), None) if wanted else None
    changes: dict[Path, Value] = {}
    if found is None:
        what = "the revision to rollback to." if wanted else "last revision."
        _emit(rollout, "Warning", "DeploymentRollbackRevisionNotFound", f"Unable to find {what}")
    elif found is rollout.new or spec.same_template(
        rollout.snapshot.deployment.spec.template, found.replica_set.spec.template
    ):
        name = rollout.snapshot.deployment.name
        text = f'The rollback revision contains the same template as current deployment "{name}"'
        _emit(rollout, "Warning", "DeploymentRollbackTemplateUnchanged", text)
    else:
        changes[("spec", "template")] = spec.without_hash(found.replica_set.spec.template)
        annotations = _annotations_of(found, annotations)
        name = rollout.snapshot.deployment.name
        text = f'Rolled back deployment "{name}" to revision {wanted}'
        _emit(rollout, "Normal", "DeploymentRollback", text)
    changes[("metadata", "annotations")] = annotations or ABSENT
    rollout.rollback = changes


def _annotations_of(found: Target, annotations: dict[str, str]) -> dict[str, str]:
    """The Deployment's annotations that are not copied to ReplicaSets, and the revision's other annotations."""
    own = {key: value for key, value in annotations.items() if key in names.NOT_COPIED}
    return own | {key: value for key, value in found.annotations.items() if key not in names.NOT_COPIED}


def _emit(rollout: Rollout, type_: str, reason: str, message: str) -> None:
    rollout.rolled_back = Notice(ref_to(DEPLOYMENTS, rollout.snapshot.deployment), type_, reason, message)
