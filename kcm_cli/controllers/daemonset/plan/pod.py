"""The daemon pod of a node, and the revision of a pod.

upstream: pkg/controller/daemon/util/daemonset_util.go
"""

from kcm_cli.api.apps import DAEMON_SETS, DaemonSet
from kcm_cli.api.core import Pod
from kcm_cli.api.well_known import TEMPLATE_GENERATION
from kcm_cli.controllers.daemonset.plan.placement import target_of, tolerating
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list, nested_map
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.node_affinity import NAME_FIELD
from kcm_cli.planning.pod_template import pod_from_template
from kcm_cli.planning.pods import ready_condition
from kcm_cli.planning.revisions import POD_HASH_LABEL

GENERATION_LABEL = "pod-template-generation"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def template_generation(daemon_set: DaemonSet) -> str | None:
    """The template generation in the deprecated annotation; None if it is absent or invalid."""
    text = daemon_set.annotations.get(TEMPLATE_GENERATION, "")
    number = parse_int64(text)
    return None if number is None else str(number)


def is_updated(pod: Pod, hash_: str, generation: str | None) -> bool:
    """Whether the pod has this revision, by its hash or by the deprecated template generation."""
    labels = pod.labels
    if hash_ and labels.get(POD_HASH_LABEL) == hash_:
        return True
    return generation is not None and labels.get(GENERATION_LABEL) == generation


def matters(before: Pod, now: Pod) -> bool:
    """Whether an update may change what a sync does, where labels and owner are the same: plan and status read nothing
    else of a pod that can change. A note does not count, nor a container that started again."""
    return (
        target_of(before) != target_of(now)
        or before.spec.node_name != now.spec.node_name
        or before.deleting != now.deleting
        or before.status.phase != now.status.phase
        or ready_condition(before) != ready_condition(now)
    )


class PodBodies:
    """Builds the bodies of a DaemonSet's pods, which differ only in the name of the node."""

    def __init__(self, daemon_set: DaemonSet, hash_: str) -> None:
        self._pod = pod_from_template(daemon_set.spec.template, DAEMON_SETS, daemon_set)
        metadata, spec = nested_map(self._pod, "metadata"), dict(nested_map(self._pod, "spec"))
        labels = dict(nested_map(metadata, "labels"))
        generation = template_generation(daemon_set)
        if generation is not None:
            labels[GENERATION_LABEL] = generation
        if hash_:
            labels[POD_HASH_LABEL] = hash_
        host_network = spec.get("hostNetwork") is True
        spec["tolerations"] = tolerating(nested_list(spec, "tolerations"), host_network=host_network)
        self._pod |= {"metadata": {**metadata, "labels": labels}}
        self._spec = spec

    def for_node(self, name: str) -> bytes:
        """The encoded body of the node's pod."""
        spec = {**self._spec, "affinity": _bound_to(name, self._spec.get("affinity"))}
        return codec.encode({**self._pod, "spec": spec})


def _bound_to(name: str, affinity: object) -> Doc:
    """The affinity with a required match of the node's name."""
    field: Doc = {"key": NAME_FIELD, "operator": "In", "values": [name]}
    required = {**nested_map(affinity, "nodeAffinity", _REQUIRED), "nodeSelectorTerms": [{"matchFields": [field]}]}
    return {**nested_map(affinity), "nodeAffinity": {**nested_map(affinity, "nodeAffinity"), _REQUIRED: required}}
