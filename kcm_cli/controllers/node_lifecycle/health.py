"""When a node was last heard of, and what its conditions become when it falls silent.

A file of its own: health is remembered between looks at a node, and only local time counts, not what the node says.
Silence is measured in monotonic seconds: a wall clock that is set forward must not make every node unknown.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go#tryUpdateNodeHealth
"""

from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from kcm_cli.api.core import Condition, Node
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.conditions import find

READY = "Ready"
WATCHED = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class Health:
    """What is remembered of a node. probe: when it was last heard of (monotonic seconds); ready: its Ready condition
    then."""

    probe: float
    ready: Condition | None
    renewed: str = ""


@dataclass(frozen=True, slots=True)
class Periods:
    """How long a node may be silent, in seconds: one that was ready once, and one that never was."""

    grace_s: float
    startup_s: float


@dataclass(frozen=True, slots=True)
class Moment:
    """When a node is looked at: by the wall clock, and in monotonic seconds."""

    wall: datetime
    monotonic: float


def heard(known: Health | None, node: Node, renewed: str, at: Moment) -> Health:
    """What is known after a look at the node and at its lease (``renewed``: the lease's renew time, or "")."""
    now = at.monotonic
    ready = find(node.status.conditions, READY)
    if ready is None and (known is None or known.ready is None):
        health = known or Health(now - _age_s(node, at.wall), None)
    elif known is None or (known.ready is None) != (ready is None):
        health = Health(now, ready, known.renewed if known is not None else "")
    elif ready is not None and known.ready is not None and _beat(ready) != _beat(known.ready):
        health = replace(known, probe=now, ready=ready)
    else:
        health = replace(known, ready=ready)
    if renewed and renewed > health.renewed:
        health = replace(health, probe=now, renewed=renewed)
    return health


def silent(health: Health, periods: Periods, now: float) -> bool:
    """Whether the node has not been heard of for too long. now: monotonic seconds."""
    allowed = periods.grace_s if health.ready is not None else periods.startup_s
    return now - health.probe > allowed


def unknown_conditions(node: Node, now: datetime) -> tuple[Condition, ...]:
    """The conditions of a silent node: all that its kubelet keeps are unknown."""
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
    """How long ago the node was created; 0 if it does not say so in a way that can be read."""
    try:
        return (now - parse_time(node.metadata.creation_timestamp or "")).total_seconds()
    except FormatError:
        return 0.0
