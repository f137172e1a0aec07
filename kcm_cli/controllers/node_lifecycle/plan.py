"""Taints, labels and zones that follow from nodes' conditions.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum

from kcm_cli.api.core import NODES, Condition, Node, Taint
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import EventRef, Notice

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"

_TAINTS: Mapping[tuple[str, str], str] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN = frozenset(_TAINTS.values()) | {UNSCHEDULABLE}
_LABELS = (("kubernetes.io/os", "beta.kubernetes.io/os"), ("kubernetes.io/arch", "beta.kubernetes.io/arch"))


class ZoneState(Enum):
    """How much of a zone is unhealthy: this sets how fast its nodes may be tainted for eviction."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


def unscheduling_keys(node: Node) -> set[str]:
    """The NoSchedule taints that a node's conditions and its unschedulable field ask for."""
    keys = {
        key
        for condition in node.status.conditions
        if (key := _TAINTS.get((condition.type, condition.status))) is not None
    }
    return keys | {UNSCHEDULABLE} if node.spec.unschedulable else keys


def schedule_taints(node: Node, now: datetime) -> list[Taint] | None:
    """All taints of the node with the NoSchedule ones of ours put right; None if they are."""
    wanted = unscheduling_keys(node)
    have = {t.key for t in node.spec.taints if t.effect == NO_SCHEDULE and t.key in _OWN}
    if wanted == have:
        return None
    return swapped(node, wanted - have, have - wanted, NO_SCHEDULE, now)


def swapped(node: Node, add: Iterable[str], remove: Iterable[str], effect: str, now: datetime) -> list[Taint]:
    """The node's taints with some added (if not there yet) and some removed, of one effect."""
    gone = set(remove)
    kept = [t for t in node.spec.taints if t.effect != effect or t.key not in gone]
    present = {t.key for t in kept if t.effect == effect}
    time = format_time(now)
    new = [Taint(key, "", effect, time) for key in sorted(add) if key not in present]
    return [*kept, *new]


def has_taint(node: Node, key: str) -> bool:
    """Whether the node evicts pods under this key."""
    return any(t.key == key and t.effect == NO_EXECUTE for t in node.spec.taints)


def eviction_key(ready: Condition) -> str | None:
    """The NoExecute taint that a Ready condition asks for; None for a ready node."""
    return {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready.status)


def is_settled(node: Node, ready: Condition) -> bool:
    """Whether a node is ready and has no taint that says otherwise."""
    return ready.status == "True" and not any(has_taint(node, key) for key in (NOT_READY, UNREACHABLE))


def missing_labels(node: Node) -> dict[str, str]:
    """The old names of labels that have to follow the new ones."""
    labels = node.labels
    return {old: labels[new] for new, old in _LABELS if new in labels and labels.get(old) != labels[new]}


def zone_of(node: Node) -> str:
    """Region and zone of a node, as upstream joins them; "" if it names neither. The old names come first."""
    labels = node.labels
    region = labels.get(_OLD_REGION, labels.get(_REGION, ""))
    zone = labels.get(_OLD_ZONE, labels.get(_ZONE, ""))
    return f"{region}:\x00:{zone}" if region or zone else ""


def zone_state(ready: Iterable[Condition | None], threshold: float) -> tuple[int, ZoneState]:
    """How many nodes of a zone are not ready, and its state."""
    states = [condition is not None and condition.status == "True" for condition in ready]
    bad = states.count(False)
    if bad and bad == len(states):
        return bad, ZoneState.FULL
    if bad > 2 and bad / len(states) >= threshold:
        return bad, ZoneState.PARTIAL
    return bad, ZoneState.NORMAL


def taints_patch(node: Node, taints: Iterable[Taint]) -> Doc:
    """Strategic merge patch: the whole list of taints, if the node is still as it was seen."""
    docs = [_taint(taint) for taint in taints]
    return {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": docs or None}}


def _taint(taint: Taint) -> Doc:
    doc: Doc = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        doc["value"] = taint.value
    if taint.time_added:
        doc["timeAdded"] = taint.time_added
    return doc


def about(node: Node, reason: str, message: str) -> Notice:
    """An Event of the node controller on a node."""
    ref = EventRef(NODES.api_version, NODES.kind, "", node.name, node.uid)
    return Notice(ref, "Normal", reason, message)
