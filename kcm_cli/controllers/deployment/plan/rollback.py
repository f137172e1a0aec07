"""The deprecated rollback annotation: restores the template of an earlier revision.

upstream: pkg/controller/deployment/rollback.go
"""

from collections.abc import Mapping

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.revisions import last_revision, revision_in
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Target
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.actions import ABSENT, Notice, Path, Update, Value, ref_to


def rollback_revision(annotations: Mapping[str, str]) -> int | None:
    """The requested revision (0: the previous one); None if no rollback is requested."""
    return parse_int64(annotations.get(spec.ROLLBACK_TO, ""))


def rollback(rollout: Rollout, revision: int) -> Update:
    """Restore the template and the annotations of the revision. The annotation with the request is removed in any
    case."""
    deployment, known = rollout.snapshot.deployment, rollout.all()
    annotations = {key: value for key, value in rollout.annotations.items() if key != spec.ROLLBACK_TO}
    wanted = revision or last_revision(target.annotations for target in known)
    found = next((target for target in known if revision_in(target.annotations) == wanted), None) if wanted else None
    changes: dict[Path, Value] = {}
    if found is None:
        what = "the revision to rollback to." if wanted else "last revision."
        event = "Warning", "DeploymentRollbackRevisionNotFound", f"Unable to find {what}"
    elif found is rollout.new or spec.same_template(deployment.spec.template, found.replica_set.spec.template):
        text = f'The rollback revision contains the same template as current deployment "{deployment.name}"'
        event = "Warning", "DeploymentRollbackTemplateUnchanged", text
    else:
        changes[("spec", "template")] = spec.without_hash(found.replica_set.spec.template)
        annotations = _annotations_of(found, annotations)
        text = f'Rolled back deployment "{deployment.name}" to revision {wanted}'
        event = "Normal", "DeploymentRollback", text
    changes[("metadata", "annotations")] = annotations or ABSENT
    done = Notice(ref_to(DEPLOYMENTS, deployment), *event)
    return Update(DEPLOYMENTS, deployment, changes, done=done, reason="rollback was requested")


def _annotations_of(found: Target, annotations: Mapping[str, str]) -> dict[str, str]:
    """The Deployment's annotations that are not copied to ReplicaSets, and the revision's other annotations."""
    own = {key: value for key, value in annotations.items() if key in spec.NOT_COPIED}
    return own | {key: value for key, value in found.annotations.items() if key not in spec.NOT_COPIED}
