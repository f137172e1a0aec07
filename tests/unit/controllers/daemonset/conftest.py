"""DaemonSets, nodes and pods as views, and a snapshot of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kcm_cli.api.apps import DAEMON_SETS, DaemonSet
from kcm_cli.api.core import NODES, PODS, Node, Pod
from kcm_cli.controllers.daemonset.plan.place import Snapshot
from kcm_cli.controllers.daemonset.plan.placement import ALWAYS, Fit
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
UID = "set-uid"
TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "agent"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {}}]},
}


def set_of(
    status: dict[str, Any] | None = None,
    *,
    annotations: dict[str, str] | None = None,
    rolling: dict[str, Any] | None = None,
    **spec: Any,
) -> DaemonSet:
    """A DaemonSet with a rolling update of one at a time; ``rolling`` and ``spec`` change fields."""
    full = {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": TEMPLATE,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, **(rolling or {})}},
    } | spec
    metadata = {"name": "agent", "namespace": "ns", "uid": UID, "generation": 2, "annotations": annotations}
    return DAEMON_SETS.decode(codec.encode({"metadata": metadata, "spec": full, "status": status or {}}))


def node_of(name: str = "n1", *taints: tuple[str, str], **labels: str) -> Node:
    """A node; taints are (key, effect)."""
    spec = {"taints": [{"key": key, "effect": effect} for key, effect in taints]}
    return NODES.decode(codec.encode({"metadata": {"name": name, "labels": labels}, "spec": spec}))


def pod_of(
    name: str,
    state: str = "ready",
    *,
    hash_: str = "new",
    deleting: bool = False,
    bound: bool = True,
    age_s: float = 100.0,
    ready_for_s: float = 60.0,
    labels: dict[str, str] | None = None,
) -> Pod:
    """The pod ``node`` or ``node/suffix``. ``state``: ready, running, failed, succeeded."""
    node = name.partition("/")[0]
    phase = {"failed": "Failed", "succeeded": "Succeeded"}.get(state, "Running")
    since = format_time(NOW - timedelta(seconds=ready_for_s))
    ready = {"type": "Ready", "status": "True" if state == "ready" else "False", "lastTransitionTime": since}
    metadata: dict[str, Any] = {
        "name": name.replace("/", "-"),
        "namespace": "ns",
        "uid": f"uid-{name}",
        "labels": {"app": "agent", "controller-revision-hash": hash_} if labels is None else labels,
        "creationTimestamp": format_time(NOW - timedelta(seconds=age_s)),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec: dict[str, Any] = {"affinity": {"nodeAffinity": required}}
    if bound:
        spec["nodeName"] = node
    doc = {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": [ready]}}
    return PODS.decode(codec.encode(doc))


def take_snapshot(
    daemon_set: DaemonSet,
    fits: Mapping[str, Fit] | Sequence[str],
    *pods: Pod,
    backoff: Mapping[str, float] | None = None,
) -> Snapshot:
    """A snapshot; ``fits`` as a list names nodes that should all have a pod. The hash of the template is ``new``."""
    by_node: dict[str, tuple[Pod, ...]] = {}
    for pod in pods:
        node = pod.uid.removeprefix("uid-").partition("/")[0]
        by_node[node] = (*by_node.get(node, ()), pod)
    known = fits if isinstance(fits, Mapping) else dict.fromkeys(fits, ALWAYS)
    return Snapshot(daemon_set, known, by_node, "new", backoff or {})
