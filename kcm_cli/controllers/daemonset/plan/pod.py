"""The daemon pod of a node, and which revision a pod is of.

upstream: pkg/controller/daemon/util/daemonset_util.go
"""

from kcm_cli.api.apps import DAEMON_SETS, DaemonSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.daemonset.plan.placement import tolerating
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.planning.node_affinity import NAME_FIELD
from kcm_cli.planning.pod_template import pod_from_template
from kcm_cli.planning.revisions import POD_HASH_LABEL

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
GENERATION_LABEL = "pod-template-generation"


def template_generation(daemon_set: DaemonSet) -> str | None:
    """The number that clients of the first API versions kept in an annotation; None if there is none."""
    text = daemon_set.annotations.get(TEMPLATE_GENERATION, "")
    number = parse_int64(text)
    return None if number is None else str(number)


def is_updated(pod: Pod, hash_: str, generation: str | None) -> bool:
    """Whether the pod is of this revision, by its hash or by the old number."""
    labels = pod.labels
    if hash_ and labels.get(POD_HASH_LABEL) == hash_:
        return True
    return generation is not None and labels.get(GENERATION_LABEL) == generation


class PodBodies:
    """Makes the bodies of a DaemonSet's pods, which differ only in the node that they name."""

    def __init__(self, daemon_set: DaemonSet, hash_: str) -> None:
        self._pod = pod_from_template(daemon_set.spec.template, DAEMON_SETS, daemon_set)
        metadata, spec = _copy(self._pod["metadata"]), _copy(self._pod["spec"])
        labels = _copy(metadata.get("labels"))
        generation = template_generation(daemon_set)
        if generation is not None:
            labels[GENERATION_LABEL] = generation
        if hash_:
            labels[POD_HASH_LABEL] = hash_
        own = spec.get("tolerations")
        host_network = spec.get("hostNetwork") is True
        spec["tolerations"] = tolerating(own if isinstance(own, list) else (), host_network=host_network)
        self._pod |= {"metadata": {**metadata, "labels": labels}}
        self._spec = spec

    def for_node(self, name: str) -> bytes:
        """The encoded body of the pod for this node."""
        spec = {**self._spec, "affinity": _bound_to(name, self._spec.get("affinity"))}
        return codec.encode({**self._pod, "spec": spec})


def _bound_to(name: str, affinity: object) -> Doc:
    """The affinity that lets the scheduler put a pod on this node only."""
    result = _copy(affinity)
    node_affinity = _copy(result.get("nodeAffinity"))
    required = _copy(node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    field: Doc = {"key": NAME_FIELD, "operator": "In", "values": [name]}
    required["nodeSelectorTerms"] = [{"matchFields": [field]}]
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = required
    result["nodeAffinity"] = node_affinity
    return result


def _copy(doc: object) -> Doc:
    return dict(doc) if isinstance(doc, dict) else {}
