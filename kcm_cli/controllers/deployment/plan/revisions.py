"""Finds the new ReplicaSet, and numbers revisions.

upstream: pkg/controller/deployment/sync.go#getNewReplicaSet, util/deployment_util.go#SetNewReplicaSetAnnotations
"""

from collections.abc import Iterable, Mapping

from kcm_cli.api.apps import DEPLOYMENTS, Deployment, ReplicaSet
from kcm_cli.controllers.deployment.plan import names, spec
from kcm_cli.controllers.deployment.plan.rollout import Rollout, Snapshot, Target, by_age, replicas_in, target_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.hashes import pod_template_hash
from kcm_cli.machinery.integers import int32, parse_int64
from kcm_cli.machinery.intstr import scaled_value
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.pod_template import controller_ref, labels_of

MAX_NAME = 253


def start(snapshot: Snapshot) -> Rollout:
    """Separate the new ReplicaSet (same template; the oldest of several) from the old ones."""
    same_template = spec.templates_as(snapshot.deployment.spec.template)
    targets = by_age([target_of(replica_set) for replica_set in snapshot.replica_sets])
    new = next((t for t in targets if same_template(t.replica_set.spec.template)), None)
    deployment = snapshot.deployment
    return Rollout(
        snapshot,
        new,
        [target for target in targets if target is not new],
        deployment.status,
        dict(deployment.annotations),
    )


def revision_of(replica_set: ReplicaSet) -> int | None:
    """The revision of a ReplicaSet: 0 without the annotation, None if it is not a number."""
    return revision_in(replica_set.annotations)


def revision_in(annotations: Mapping[str, str]) -> int | None:
    """The revision in a ReplicaSet's annotations: 0 without the annotation, None if it is not a number."""
    text = annotations.get(names.REVISION)
    return 0 if text is None else parse_int64(text)


def max_revision(replica_sets: Iterable[ReplicaSet]) -> int:
    return max((revision_of(replica_set) or 0 for replica_set in replica_sets), default=0)


def last_revision(annotations: Iterable[Mapping[str, str]]) -> int:
    """The second highest revision in these annotations of ReplicaSets; 0 if there is none. upstream: LastRevision."""
    known = sorted((revision_in(each) or 0 for each in annotations), reverse=True)
    return known[1] if len(known) > 1 else 0


def sync_revision(rollout: Rollout) -> None:
    """Update the annotations and minReadySeconds of the new ReplicaSet, and the Deployment's revision."""
    target = rollout.new
    if target is None or target.new:
        return
    deployment = rollout.snapshot.deployment
    revision = max_revision(old.replica_set for old in rollout.old) + 1
    annotate(target.annotations, deployment, revision)
    target.min_ready_seconds = deployment.spec.min_ready_seconds
    own = target.annotations.get(names.REVISION, "")
    if own:
        rollout.annotations[names.REVISION] = own


def annotate(annotations: dict[str, str], deployment: Deployment, revision: int) -> None:
    """Copy the Deployment's annotations and raise the revision. Earlier revisions are kept in the history
    annotation. A ReplicaSet whose revision is not a number is left alone."""
    before = annotations.get(names.REVISION)
    number = parse_int64(before) if before else 0
    if number is None:
        return
    for key, value in deployment.annotations.items():
        if key not in names.NOT_COPIED:
            annotations[key] = value
    if number >= revision:
        return
    annotations[names.REVISION] = str(revision)
    if before is not None:
        _remember(annotations, before)


def _remember(annotations: dict[str, str], revision: str) -> None:
    history = annotations.get(names.REVISION_HISTORY, "")
    if not history:
        annotations[names.REVISION_HISTORY] = revision
        return
    kept = history.split(",")
    while kept and len(",".join(kept)) + len(revision) + 1 > names.HISTORY_LIMIT:
        kept.pop(0)
    annotations[names.REVISION_HISTORY] = ",".join([*kept, revision])


def create_new(rollout: Rollout) -> None:
    """Add a new ReplicaSet to the rollout if there is none. Its name contains the template's hash."""
    if rollout.new is not None:
        return
    deployment = rollout.snapshot.deployment
    value = pod_template_hash(deployment.spec.template, deployment.status.collision_count)
    name = replica_set_name(deployment.name, value)
    template = spec.with_hash(deployment.spec.template, value)
    planned = ReplicaSet(metadata=ObjectMeta(name=name, namespace=deployment.namespace))
    target = Target(planned, 0, {}, deployment.spec.min_ready_seconds)
    annotate(target.annotations, deployment, max_revision(old.replica_set for old in rollout.old) + 1)
    rollout.annotate(target)
    rollout.new = target
    target.replicas = initial_size(rollout)
    target.body = _body(rollout, target, template, value)
    rollout.annotations[names.REVISION] = target.annotations[names.REVISION]


def replica_set_name(deployment: str, value: str) -> str:
    """``deployment-hash``. A long name of the Deployment is cut."""
    return f"{deployment[: MAX_NAME - 1 - len(value)]}-{value}"


def initial_size(rollout: Rollout) -> int:
    """The number of pods that the new ReplicaSet may have at once, given the existing pods.

    upstream: pkg/controller/deployment/util/deployment_util.go#NewRSNewReplicas
    """
    deployment = rollout.snapshot.deployment
    desired = spec.replicas_of(deployment)
    assert rollout.new is not None
    current = rollout.new.replicas
    if not spec.rolling(deployment):
        return desired
    update = deployment.spec.strategy.rolling_update
    surge = update.max_surge if update is not None and update.max_surge is not None else 0
    room = int32(desired + scaled_value(surge, desired, round_up=True)) - replicas_in(rollout.all())
    if room <= 0:
        return current
    return current + min(room, desired - current)


def _body(rollout: Rollout, target: Target, template: Doc, value: str) -> Doc:
    deployment = rollout.snapshot.deployment
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": target.name,
            "namespace": deployment.namespace,
            "labels": labels_of(template),
            "annotations": target.annotations,
            "ownerReferences": [controller_ref(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": target.replicas,
            "minReadySeconds": target.min_ready_seconds,
            "selector": _selector(deployment, value),
            "template": template,
        },
    }


def _selector(deployment: Deployment, value: str) -> Doc:
    own = codec.decode_doc(codec.encode(deployment.spec.selector)) if deployment.spec.selector else {}
    return {**own, "matchLabels": {**nested_map(own, "matchLabels"), names.HASH_LABEL: value}}
