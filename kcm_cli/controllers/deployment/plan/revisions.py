"""Finds the new ReplicaSet, and numbers revisions.

upstream: pkg/controller/deployment/sync.go#getNewReplicaSet, util/deployment_util.go#SetNewReplicaSetAnnotations
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kcm_cli.api.apps import DEPLOYMENTS, Deployment, ReplicaSet
from kcm_cli.controllers.deployment.plan import spec
from kcm_cli.controllers.deployment.plan.rollout import (
    Rollout,
    Snapshot,
    Target,
    about_sizes,
    by_age,
    replicas_in,
    target_of,
)
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.hashes import pod_template_hash
from kcm_cli.machinery.integers import fits_int64, int32, parse_int64
from kcm_cli.machinery.intstr import scaled_value
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.machinery.names import SUBDOMAIN_MAX
from kcm_cli.planning.pod_template import controller_ref, labels_of
from kcm_cli.planning.replicas import replicas_of


def start(snapshot: Snapshot) -> Rollout:
    """Separate the new ReplicaSet (same template; the oldest of several) from the old ones."""
    same_template = spec.templates_as(snapshot.deployment.spec.template)
    targets = by_age([target_of(replica_set) for replica_set in snapshot.replica_sets])
    deployment = snapshot.deployment
    new = next((t for t in targets if same_template(t.replica_set.spec.template)), None)
    if new is None:
        new = next(iter(altered(deployment, targets)), None)
    return Rollout(
        snapshot,
        new,
        tuple(target for target in targets if target is not new),
        deployment.status,
        deployment.annotations,
    )


def altered(deployment: Deployment, targets: Iterable[Target]) -> tuple[Target, ...]:
    """The last two ReplicaSets that were created for the template, the later one first, if both have the same other
    template: admission alters it. None otherwise.

    Upstream takes each for a collision of hashes, and creates one after the other without end.
    """
    count = deployment.status.collision_count or 0
    if count <= 0:
        return ()
    known = {target.name: target for target in targets}
    names = (_name_of_new(deployment, each) for each in (count, count - 1 or None))
    found = tuple(known[name] for name in names if name in known)
    templates = [target.replica_set.spec.template for target in found]
    return found if len(found) == 2 and spec.same_template(*templates) else ()


def revision_of(replica_set: ReplicaSet) -> int | None:
    """The revision of a ReplicaSet: 0 without the annotation, None if it is not a number."""
    return revision_in(replica_set.annotations)


def revision_in(annotations: Mapping[str, str]) -> int | None:
    """The revision in a ReplicaSet's annotations: 0 without the annotation, None if it is not a number."""
    text = annotations.get(spec.REVISION)
    return 0 if text is None else parse_int64(text)


def max_revision(rollout: Rollout) -> int:
    """The highest revision of the old ReplicaSets; 0 at least."""
    return max((0, *(revision_of(old.replica_set) or 0 for old in rollout.old)))


def last_revision(annotations: Iterable[Mapping[str, str]]) -> int:
    """The second highest revision in these annotations of ReplicaSets; 0 if there is none. upstream: LastRevision."""
    known = sorted((revision_in(each) or 0 for each in annotations), reverse=True)
    return known[1] if len(known) > 1 else 0


def sync_revision(rollout: Rollout) -> Rollout:
    """The annotations and minReadySeconds of the new ReplicaSet, and the Deployment's revision."""
    if rollout.new is None:
        return rollout
    deployment = rollout.snapshot.deployment
    annotations = annotated(rollout.new.annotations, deployment, max_revision(rollout) + 1)
    new = replace(rollout.new, annotations=annotations, min_ready_seconds=deployment.spec.min_ready_seconds)
    return _with_new(rollout, new)


def _with_new(rollout: Rollout, new: Target) -> Rollout:
    """The rollout with this new ReplicaSet, whose revision becomes the Deployment's."""
    revision = new.annotations.get(spec.REVISION, "")
    if not revision or rollout.annotations.get(spec.REVISION) == revision:
        return replace(rollout, new=new)
    return replace(rollout, new=new, annotations={**rollout.annotations, spec.REVISION: revision})


def annotated(annotations: Mapping[str, str], deployment: Deployment, revision: int) -> Mapping[str, str]:
    """The annotations with those of the Deployment and the higher revision. Earlier revisions are kept in the history
    annotation. A ReplicaSet whose revision is not a number is left alone."""
    before = annotations.get(spec.REVISION)
    number = parse_int64(before) if before else 0
    if number is None:
        return annotations
    copied = {key: value for key, value in deployment.annotations.items() if key not in spec.NOT_COPIED}
    result = {**annotations, **copied}
    if number < revision and fits_int64(revision):
        result[spec.REVISION] = str(revision)
        if before is not None:
            result[spec.REVISION_HISTORY] = _history(annotations.get(spec.REVISION_HISTORY, ""), before)
    return result


def _history(history: str, revision: str) -> str:
    """The history with one revision more. It has at most HISTORY_LIMIT characters: the oldest revisions are dropped,
    and a revision that is too long itself is not added."""
    if not history or history.startswith(","):
        return revision
    room = spec.HISTORY_LIMIT - len(revision) - 1
    if room < -1:
        return history
    if len(history) > room:
        dropped = history.find(",", len(history) - room - 1)
        if dropped < 0:
            return revision
        history = history[dropped + 1 :]
    return f"{history},{revision}"


def create_new(rollout: Rollout) -> Rollout:
    """The rollout with a new ReplicaSet, if there is none. Its name contains the template's hash."""
    if rollout.new is not None:
        return rollout
    deployment = rollout.snapshot.deployment
    value = pod_template_hash(deployment.spec.template, deployment.status.collision_count)
    meta = ObjectMeta(name=replica_set_name(deployment.name, value), namespace=deployment.namespace)
    new = Target(
        ReplicaSet(metadata=meta),
        new_size(rollout, 0),
        {**annotated({}, deployment, max_revision(rollout) + 1), **about_sizes(deployment)},
        deployment.spec.min_ready_seconds,
        template=spec.with_hash(deployment.spec.template, value),
    )
    return _with_new(rollout, new)


def _name_of_new(deployment: Deployment, collisions: int | None) -> str:
    """The name of the new ReplicaSet after this number of collisions."""
    return replica_set_name(deployment.name, pod_template_hash(deployment.spec.template, collisions))


def replica_set_name(deployment: str, value: str) -> str:
    """``deployment-hash``. A long name of the Deployment is cut."""
    return f"{deployment[: SUBDOMAIN_MAX - 1 - len(value)]}-{value}"


def new_size(rollout: Rollout, current: int) -> int:
    """The number of pods that the new ReplicaSet may have at once, given the existing pods. ``current``: its own.

    upstream: pkg/controller/deployment/util/deployment_util.go#NewRSNewReplicas
    """
    deployment = rollout.snapshot.deployment
    desired = replicas_of(deployment)
    if not spec.rolling(deployment):
        return desired
    update = deployment.spec.strategy.rolling_update
    surge = update.max_surge if update is not None and update.max_surge is not None else 0
    room = int32(desired + scaled_value(surge, desired, round_up=True)) - replicas_in(rollout.all())
    if room <= 0:
        return current
    return current + min(room, desired - current)


def body_of(deployment: Deployment, new: Target) -> Doc:
    """The body of a new ReplicaSet."""
    labels = labels_of(new.template or {})
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": new.name,
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": new.annotations,
            "ownerReferences": [controller_ref(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": new.replicas,
            "minReadySeconds": new.min_ready_seconds,
            "selector": _selector(deployment, labels[spec.HASH_LABEL]),
            "template": new.template,
        },
    }


def _selector(deployment: Deployment, value: object) -> Doc:
    own = codec.decode_doc(codec.encode(deployment.spec.selector)) if deployment.spec.selector else {}
    return {**own, "matchLabels": {**nested_map(own, "matchLabels"), spec.HASH_LABEL: value}}
