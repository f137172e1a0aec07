"""One pod, one decision: the node it goes to, or why there is none. Reads the state and changes nothing.

upstream: pkg/scheduler/schedule_one.go#schedulePod
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from kcm_cli.sandbox.scheduler import filters, scoring
from kcm_cli.sandbox.scheduler.devices.filter import DeviceFilter, Reservation
from kcm_cli.sandbox.scheduler.interpod import affinity_filter
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.spread import spread_filter
from kcm_cli.sandbox.scheduler.state import ClusterState, NodeInfo
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.scheduler.verdict import Filter, FitError, Refusal
from kcm_cli.sandbox.scheduler.volumes import Needs, VolumeFilter

ENOUGH = 100
"""With more nodes than this, only a share of those that fit is compared."""
_LEAST_PERCENT = 5


@dataclass(frozen=True, slots=True)
class Placement:
    """The node to bind to, and what has to happen first."""

    node: str
    needs: Needs
    reservations: tuple[Reservation, ...] = ()
    seen: int = 0
    """How many nodes were looked at."""

    @property
    def prepares(self) -> bool:
        """Whether something has to be written before."""
        return bool(self.needs.bindings or self.needs.provisions or self.reservations)


@dataclass(frozen=True, slots=True)
class Filters:
    """All filters that a pod needs, with what they know of one state."""

    checks: tuple[Filter, ...]
    volumes: VolumeFilter
    devices: DeviceFilter

    def check(self, node: NodeInfo) -> Refusal | None:
        """The first refusal."""
        for check in self.checks:
            refusal = check(node)
            if refusal is not None:
                return refusal
        return None


def filters_for(info: PodInfo, state: ClusterState, volumes: Volumes) -> Filters:
    """Make the filters for a pod on a state."""
    mounted = VolumeFilter(info, volumes, state)
    checks = [filters.basic(info), *mounted.filters]
    claimed = DeviceFilter(info, state.devices)
    devices = claimed.check if claimed.used else None
    for made in (spread_filter(info, state), affinity_filter(info, state), devices, filters.features(info)):
        if made is not None:
            checks.append(made)
    return Filters(tuple(checks), mounted, claimed)


def decide(
    info: PodInfo, state: ClusterState, volumes: Volumes, rng: random.Random, *, start: int = 0
) -> Placement | FitError:
    """Where a pod goes. ``start``: the number of the node to begin with; the next pod begins where this one ended.

    Raises AllocationError.
    """
    total = len(state.nodes)
    if not total:
        return FitError(0, {})
    made = filters_for(info, state, volumes)
    if made.volumes.refusal is not None:
        return FitError(total, {}, before=made.volumes.refusal)
    if made.devices.refusal is not None:
        return FitError(total, {}, before=made.devices.refusal)
    named = filters.named_nodes(info)
    if named is not None and not named:
        return FitError(total, {}, before=filters.TERMS_CONFLICT)
    nominated = state.nodes.get(info.pod.status.nominated_node_name)
    if nominated is not None and check_with_nominated(info, state, volumes, made, nominated) is None:
        return _placement(made, nominated, rng)
    feasible: list[NodeInfo] = []
    refusals: dict[str, Refusal] = {}
    enough, promised = _enough(total), state.nominated
    check = made.checks[0] if len(made.checks) == 1 else made.check
    for node in _in_turn(state, named, start):
        if promised and node.name in promised:
            refusal = check_with_nominated(info, state, volumes, made, node)
        else:
            refusal = check(node)
        if refusal is not None:
            refusals[node.name] = refusal
            continue
        feasible.append(node)
        if len(feasible) >= enough:
            break
    if not feasible:
        absent = filters.ELSEWHERE if named is not None else ""
        return FitError(total, refusals, absent=absent, away=tuple(made.devices.away.values()))
    chosen = feasible[0]
    if len(feasible) > 1:
        total_scores = made.devices.add_scores(scoring.scores(info, state, feasible), feasible)
        chosen = state.nodes[rng.choice(scoring.best(total_scores, feasible))]
    return _placement(made, chosen, rng, seen=len(feasible) + len(refusals))


def _placement(made: Filters, node: NodeInfo, rng: random.Random, *, seen: int = 0) -> Placement:
    return Placement(node.name, made.volumes.needs(node), made.devices.reservations(node.name, rng), seen)


def check_with_nominated(
    info: PodInfo, state: ClusterState, volumes: Volumes, made: Filters, node: NodeInfo
) -> Refusal | None:
    """The first refusal, with the pods that have this node promised on it, and without them."""
    promised = state.nominated.get(node.name)
    if promised:
        others = [other for other in promised.values() if other.priority >= info.priority and other.key != info.key]
        if others:
            fuller = node.copy()
            for other in others:
                fuller.add(other)
            refusal = filters_for(info, state.with_node(fuller), volumes).check(fuller)
            if refusal is not None:
                return refusal
    return made.check(node)


def _in_turn(state: ClusterState, named: frozenset[str] | None, start: int) -> Iterable[NodeInfo]:
    if named is not None:
        return [state.nodes[name] for name in sorted(named) if name in state.nodes]
    nodes = state.by_zone()
    start %= len(nodes)
    return chain(nodes[start:], nodes[:start])


def _enough(total: int) -> int:
    """How many nodes that fit are looked for."""
    if total <= ENOUGH:
        return total
    percent = max(_LEAST_PERCENT, 50 - total // 125)
    return max(ENOUGH, total * percent // 100)
