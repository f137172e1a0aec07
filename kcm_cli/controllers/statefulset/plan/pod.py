"""The pod of an ordinal, and the volumes for its claims.

upstream: pkg/controller/statefulset/stateful_set_utils.go#newVersionedStatefulSetPod, updateStorage, storageMatches
"""

from collections.abc import Iterable

from kcm_cli.api.apps import STATEFUL_SETS, StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.statefulset.plan.claims import claim_name, template_names
from kcm_cli.controllers.statefulset.plan.identity import identity_labels, ordinal_of, pod_name, start_of
from kcm_cli.controllers.statefulset.plan.snapshot import Revision, Snapshot
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map, nested_str
from kcm_cli.planning.pod_template import pod_from_template
from kcm_cli.planning.revisions import POD_HASH_LABEL

ROLLING_UPDATE = "RollingUpdate"


def new_revision(snapshot: Snapshot, ordinal: int) -> Revision:
    """The revision for a new pod of this ordinal: the current one below the partition, else the update revision."""
    set_ = snapshot.set
    strategy = set_.spec.update_strategy
    rolling = strategy.rolling_update
    if rolling is not None:
        old = rolling.partition or 0
    else:
        old = set_.status.current_replicas if strategy.type == ROLLING_UPDATE else 0
    return snapshot.current if ordinal < start_of(set_) + old else snapshot.update


def new_pod(set_: StatefulSet, ordinal: int, revision: Revision) -> Doc:
    """The body of the pod."""
    pod = pod_from_template(revision.template, STATEFUL_SETS, set_)
    metadata, spec = dict(nested_map(pod, "metadata")), dict(nested_map(pod, "spec"))
    name = pod_name(set_, ordinal)
    metadata["name"] = name
    labels = {**identity_labels(set_, ordinal), POD_HASH_LABEL: revision.name}
    metadata["labels"] = {**nested_map(metadata, "labels"), **labels}
    spec["hostname"] = name
    spec.pop("subdomain", None)
    if set_.spec.service_name:
        spec["subdomain"] = set_.spec.service_name
    if set_.spec.volume_claim_templates:
        spec["volumes"] = with_claims(set_, ordinal, nested_list(spec, "volumes"))
    return {**pod, "metadata": metadata, "spec": spec}


def with_claims(set_: StatefulSet, ordinal: int, volumes: Iterable[object]) -> list[object]:
    """A pod's volumes with those of the set's claims. Other volumes of the same names are replaced."""
    names = template_names(set_)
    claimed: list[object] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim_name(set_, name, ordinal)}} for name in names
    ]
    own = frozenset(names)
    return claimed + [volume for volume in volumes if nested_str(volume, "name") not in own]


def storage_matches(set_: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's volumes use the claims of its ordinal."""
    names = template_names(set_)
    if not names:
        return True
    ordinal = ordinal_of(pod)
    used = {volume.name: volume.persistent_volume_claim for volume in pod.spec.volumes}
    for name in names:
        claim = used.get(name)
        if claim is None or claim.claim_name != claim_name(set_, name, ordinal):
            return False
    return True


def repaired(set_: StatefulSet, pod: Doc) -> Doc:
    """The pod with the right labels and volumes for its name."""
    metadata, spec = dict(nested_map(pod, "metadata")), dict(nested_map(pod, "spec"))
    ordinal = int(nested_str(metadata, "name").rpartition("-")[2])
    metadata["labels"] = {**nested_map(metadata, "labels"), **identity_labels(set_, ordinal)}
    if set_.spec.volume_claim_templates:
        spec["volumes"] = with_claims(set_, ordinal, nested_list(spec, "volumes"))
    return {**pod, "metadata": metadata, "spec": spec}
