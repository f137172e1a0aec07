"""Computes taints, labels, health and zone states from nodes and their conditions.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import Enum

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import NODES, Condition, Node, Taint
from kcm_cli.api.well_known import NOT_READY, REGION, UNREACHABLE, ZONE
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import EventRef, Notice, Patch
from kcm_cli.planning.conditions import find

READY = "Ready"
WATCHED = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
EXCLUDED = "node.kubernetes.io/exclude-disruption"
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
    """The state of a zone, which sets the rate at which its nodes are tainted for eviction."""

    INITIAL = "Initial"
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


def unscheduling_keys(node: Node) -> set[str]:
    """The keys of the NoSchedule taints for a node's conditions and its unschedulable field."""
    keys = {
        key
        for condition in node.status.conditions
        if (key := _TAINTS.get((condition.type, condition.status))) is not None
    }
    return keys | {UNSCHEDULABLE} if node.spec.unschedulable else keys


def plan_taints(node: Node, now: datetime) -> Patch | None:
    """Give the node the right NoSchedule taints of this controller; None if they are right already."""
    wanted = unscheduling_keys(node)
    have = {t.key for t in node.spec.taints if t.effect == NO_SCHEDULE and t.key in _OWN}
    if wanted == have:
        return None
    taints = swap_taints(node, wanted - have, have - wanted, NO_SCHEDULE, now)
    return taints_patch(node, taints, "NoSchedule taints follow the conditions")


def swap_taints(node: Node, add: Iterable[str], remove: Iterable[str], effect: str, now: datetime) -> tuple[Taint, ...]:
    """The node's taints with some added (unless present) and some removed. All have this effect."""
    removed = set(remove)
    kept = [t for t in node.spec.taints if t.effect != effect or t.key not in removed]
    present = {t.key for t in kept if t.effect == effect}
    time = format_time(now)
    new = [Taint(key, "", effect, time) for key in sorted(add) if key not in present]
    return (*kept, *new)


def has_taint(node: Node, key: str) -> bool:
    """Whether the node has a NoExecute taint with this key."""
    return any(t.key == key and t.effect == NO_EXECUTE for t in node.spec.taints)


def plan_eviction(ready: Condition) -> tuple[str, str] | None:
    """(the key of the NoExecute taint for a Ready condition, the key of the other one); None for any other
    status than False and Unknown."""
    return {"False": (NOT_READY, UNREACHABLE), "Unknown": (UNREACHABLE, NOT_READY)}.get(ready.status)


def eviction_keys(node: Node) -> set[str]:
    """The key of the NoExecute taint that a node's Ready condition calls for, if there is one."""
    ready = find(node.status.conditions, READY)
    keys = plan_eviction(ready) if ready is not None else None
    return {keys[0]} if keys is not None else set()


def is_settled(node: Node, ready: Condition) -> bool:
    """Whether a node is ready and has no eviction taint."""
    return ready.status == "True" and not any(has_taint(node, key) for key in (NOT_READY, UNREACHABLE))


def plan_labels(node: Node) -> Patch | None:
    """Set the deprecated labels that differ from those that replace them; None if there are none."""
    labels = node.labels
    wanted = {old: labels[new] for new, old in _LABELS if new in labels and labels.get(old) != labels[new]}
    body: Doc = {"metadata": {"labels": wanted}}
    return Patch(NODES, "", node.name, body, reason="beta labels follow the stable ones") if wanted else None


def zone_of(node: Node) -> str:
    """The region and zone of a node, joined as upstream does; "" without both. The deprecated labels take
    precedence."""
    labels = node.labels
    region = labels.get(_OLD_REGION, labels.get(REGION, ""))
    zone = labels.get(_OLD_ZONE, labels.get(ZONE, ""))
    return f"{region}:\x00:{zone}" if region or zone else ""


def zone_state(ready: Iterable[Condition | None], threshold: float) -> tuple[int, ZoneState]:
    """(number of nodes in a zone that are not ready, state of the zone)."""
    states = [condition is not None and condition.status == "True" for condition in ready]
    bad = states.count(False)
    if bad and bad == len(states):
        return bad, ZoneState.FULL
    if bad > 2 and bad / len(states) >= threshold:
        return bad, ZoneState.PARTIAL
    return bad, ZoneState.NORMAL


def taints_patch(node: Node, taints: Iterable[Taint], reason: str) -> Patch:
    """A strategic merge patch with the whole list of taints. Its precondition is the node's resourceVersion."""
    docs = [_taint(taint) for taint in taints]
    body: Doc = {"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": docs or None}}
    return Patch(NODES, "", node.name, body, reason=reason)


def _taint(taint: Taint) -> Doc:
    doc: Doc = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        doc["value"] = taint.value
    if taint.time_added:
        doc["timeAdded"] = taint.time_added
    return doc


def node_event(node: Node, reason: str, message: str) -> Notice:
    """An Event of the node controller on a node."""
    ref = EventRef(NODES.api_version, NODES.kind, "", node.name, node.uid)
    return Notice(ref, "Normal", reason, message)


# -- zones


class Rates(msgspec.Struct, frozen=True):
    """Rates in nodes per second. ``secondary`` applies to large zones in partial disruption; small ones get 0."""

    normal: float
    secondary: float
    large: int

    def of(self, state: ZoneState, nodes: int) -> float:
        """The rate for a zone with this number of nodes; 0 stops evictions."""
        if state is ZoneState.PARTIAL:
            return self.secondary if nodes > self.large else 0.0
        return self.normal


class Change(msgspec.Struct, frozen=True):
    """The effect of new zone states: the rates to set, and whether to remove taints from all nodes or to restart all
    queues."""

    states: dict[str, ZoneState]
    rates: dict[str, float]
    let_off: bool = False
    restart: bool = False


def plan_zones(before: dict[str, ZoneState], now: dict[str, ZoneState], sizes: dict[str, int], rates: Rates) -> Change:
    """Compare the zones' states with those of the last check. upstream: handleDisruption.

    If all zones are fully disrupted nothing is evicted, since it is more likely that this manager is disconnected.
    """
    previous = {zone: before.get(zone, ZoneState.INITIAL) for zone in now}
    all_down = all(state is ZoneState.FULL for state in now.values())
    were_down = all(state is ZoneState.FULL for state in previous.values())
    if all_down and were_down:
        return Change(previous, {})
    if all_down:
        return Change(dict.fromkeys(now, ZoneState.FULL), dict.fromkeys(now, 0.0), let_off=True)
    changed = {zone for zone, state in now.items() if were_down or previous[zone] is not state}
    return Change(dict(now), {zone: rates.of(now[zone], sizes[zone]) for zone in changed}, restart=were_down)


# -- health: remembered between checks of a node. Times that nodes report are not used. Silence is measured in monotonic
# seconds: a wall clock that is set forward must not make all nodes unknown.


class Renewal(msgspec.Struct, frozen=True):
    """The version and the renewTime of a Lease, both empty without one."""

    version: int = 0
    time: str = ""

    def follows(self, known: "Renewal") -> bool:
        """Whether the node has renewed its Lease since the known renewal.

        By the version, since a node's clock may be set back, or by the time, since versions may be those of a backup.
        """
        return bool(self.time) and self.time != known.time and (self.version > known.version or self.time > known.time)


NEVER = Renewal()


class Health(msgspec.Struct, frozen=True):
    """The recorded health of a node. upstream: nodeHealthData.

    probe: the monotonic time of its last report. ready: its Ready condition then. renewed: the last of its Lease.
    """

    probe: float
    ready: Condition | None
    renewed: Renewal = NEVER


class Periods(msgspec.Struct, frozen=True):
    """The grace periods in seconds: for a node with a Ready condition, and for one that never had one."""

    grace_s: float
    startup_s: float


class Moment(msgspec.Struct, frozen=True):
    """The time of a check, by the wall clock and in monotonic seconds."""

    wall: datetime
    monotonic: float


def update_health(known: Health | None, node: Node, renewed: Renewal, at: Moment) -> Health:
    """The health after a check of the node and its Lease."""
    now = at.monotonic
    ready = find(node.status.conditions, READY)
    if ready is None and (known is None or known.ready is None):
        health = known or Health(now - _age_s(node, at.wall), None)
    elif known is None or (known.ready is None) != (ready is None):
        health = Health(now, ready, known.renewed if known is not None else NEVER)
    elif ready is not None and known.ready is not None and _beat(ready) != _beat(known.ready):
        health = replace(known, probe=now, ready=ready)
    else:
        health = replace(known, ready=ready)
    if renewed.follows(health.renewed):
        health = replace(health, probe=now, renewed=renewed)
    return health


def past_grace_period(health: Health, periods: Periods, now: float) -> bool:
    """Whether the node's grace period has passed. now: monotonic seconds."""
    allowed = periods.grace_s if health.ready is not None else periods.startup_s
    return now - health.probe > allowed


def status(node: Node, now: datetime) -> tuple[Condition, ...]:
    """The conditions of a silent node: all that its kubelet reports are Unknown."""
    result = list(node.status.conditions)
    time = format_time(now)
    for type_ in WATCHED:
        index = next((i for i, condition in enumerate(result) if condition.type == type_), None)
        if index is None:
            never = Condition(type_, "Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
            created = node.metadata.creation_timestamp
            result.append(msgspec.structs.replace(never, last_heartbeat_time=created, last_transition_time=time))
        elif result[index].status != "Unknown":
            result[index] = msgspec.structs.replace(
                result[index],
                status="Unknown",
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
                last_transition_time=time,
            )
    return tuple(result)


def _beat(condition: Condition) -> str:
    return condition.last_heartbeat_time or ""


def _age_s(node: Node, now: datetime) -> float:
    """Seconds since the node was created; 0 if its creationTimestamp is absent or invalid."""
    try:
        return (now - parse_time(node.metadata.creation_timestamp or "")).total_seconds()
    except FormatError:
        return 0.0
