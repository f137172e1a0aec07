"""Decides about one pod: its node, or why there is none. Reads the state without changing it.

upstream: pkg/scheduler/schedule_one.go#schedulePod
"""

import random
from collections.abc import Iterable, Sequence
from functools import partial

import msgspec

from kcm_cli.sandbox.scheduler import filters, scoring
from kcm_cli.sandbox.scheduler.compared import Compared
from kcm_cli.sandbox.scheduler.device_filter import WEIGHT as DEVICES_WEIGHT
from kcm_cli.sandbox.scheduler.device_filter import DeviceFilter
from kcm_cli.sandbox.scheduler.devices.results import Reservation
from kcm_cli.sandbox.scheduler.interpod import affinity_filter
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.spread import spread_filter
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.scheduler.verdict import Filter, FitError, Refusal
from kcm_cli.sandbox.scheduler.volumes import Needs, VolumeFilter

ENOUGH = 100
"""With more nodes than this, only a share of those that fit is compared."""
_PERCENT = 5
"""That share: upstream's least, what it takes for 5,600 nodes or more, or as percentageOfNodesToScore."""


class Placement(msgspec.Struct, frozen=True):
    """The node to bind to, and the steps before that."""

    node: str
    needs: Needs
    reservations: tuple[Reservation, ...] = ()
    seen: int = 0
    """The number of nodes that were checked."""

    @property
    def prepares(self) -> bool:
        """Whether something has to be written before the binding."""
        return bool(self.needs.bindings or self.needs.provisions or self.reservations)


class Filters(msgspec.Struct, frozen=True):
    """All filters for a pod, bound to one state.

    alone: depends on the node only, and comes first. Its result is the same for all pods of one ``kind``.
    """

    alone: Filter
    kind: object
    others: tuple[Filter, ...]
    volumes: VolumeFilter
    devices: DeviceFilter

    def check(self, node: NodeInfo) -> Refusal | None:
        """The first refusal of a node, or None."""
        return self.alone(node) or self.further(node)

    def further(self, node: NodeInfo) -> Refusal | None:
        """The first refusal of a node that passes ``alone``, or None."""
        for check in self.others:
            refusal = check(node)
            if refusal is not None:
                return refusal
        return None


def filters_for(info: PodInfo, state: ClusterState, volumes: Volumes) -> Filters:
    """Create the filters for a pod and a state."""
    mounted = VolumeFilter(info, volumes, state)
    others = [*mounted.filters]
    claimed = DeviceFilter(info, state.devices)
    devices = claimed.check if claimed.used else None
    for made in (spread_filter(info, state), affinity_filter(info, state), devices, filters.features(info)):
        if made is not None:
            others.append(made)
    offered = claimed.offered
    kind = (info.shape, offered) if offered else info.shape
    return Filters(filters.basic(info, offered), kind, tuple(others), mounted, claimed)


def decide(
    info: PodInfo, state: ClusterState, volumes: Volumes, rng: random.Random, *, start: int = 0
) -> Placement | FitError:
    """Decide about a pod. ``start``: the position of the first node to check; the next pod starts where this one
    ended."""
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
    turned_down = check_with_nominated(info, state, volumes, made, nominated) if nominated is not None else None
    if nominated is not None and turned_down is None:
        return _placement(made, nominated, rng)
    looking = _Looking(info, made, state, partial(check_with_nominated, info, state, volumes, made))
    if named is None:
        feasible, refusals = looking.in_turn(start)
    else:
        nodes, refusals = looking.at_named(named)
        if len(nodes) == 1:
            return _placement(made, nodes[0], rng, seen=1 + len(refusals))
        feasible = [state.columns.positions[node.name] for node in nodes]
    if nominated is not None and turned_down is not None:
        refusals.setdefault(nominated.name, turned_down)
    if not feasible:
        absent = filters.ELSEWHERE if named is not None else ""
        return FitError(
            total,
            refusals,
            absent=absent,
            claims=made.devices.used,
            away=tuple(made.devices.away.values()),
            stale=made.devices.stale,
        )
    return _placement(made, _chosen(info, state, made, feasible, rng), rng, seen=len(feasible) + len(refusals))


def _chosen(info: PodInfo, state: ClusterState, made: Filters, feasible: Sequence[int], rng: random.Random) -> NodeInfo:
    """One of the feasible nodes with the highest score."""
    nodes = state.columns.nodes
    if len(feasible) == 1:
        return nodes[feasible[0]]
    compared = Compared(state, feasible)
    parts = [*scoring.scores(info, compared), (made.devices.scores(compared), DEVICES_WEIGHT)]
    return nodes[rng.choice(scoring.best(parts, compared))]


class _Looking(msgspec.Struct, frozen=True):
    """Finds the feasible nodes, and the refusals of others, by name. promised: checks a node with nominated pods."""

    info: PodInfo
    made: Filters
    state: ClusterState
    promised: Filter

    def at_named(self, names: Iterable[str]) -> tuple[Sequence[NodeInfo], dict[str, Refusal]]:
        """Check these nodes. Columns are not read: a new node makes all anew, and gets a pod of each DaemonSet."""
        feasible: list[NodeInfo] = []
        refusals: dict[str, Refusal] = {}
        for name in sorted(names):
            node = self.state.nodes.get(name)
            if node is None:
                continue
            refusal = self.promised(node) if name in self.state.nominated else self.made.check(node)
            if refusal is not None:
                refusals[name] = refusal
            else:
                feasible.append(node)
        return feasible, refusals

    def in_turn(self, start: int) -> tuple[Sequence[int], dict[str, Refusal]]:
        """Check nodes from a position on, until enough feasible ones are found. Returns their positions."""
        columns = self.state.columns
        count = len(columns.nodes)
        left = [range(start % count, count), range(start % count)]
        alone = columns.column("alone", self.made.kind, by_pods=True)
        feasible: Sequence[int] = ()
        refusals: dict[str, Refusal] = {}
        while left and (missing := _enough(count) - len(feasible)):
            stretch, left[0] = left[0][:missing], left[0][missing:]
            if not left[0]:
                del left[0]
            fitting = self._fitting(stretch, alone.of(stretch, columns.nodes, self.made.alone), refusals)
            feasible = [*feasible, *fitting] if feasible else fitting
        return feasible, refusals

    def _fitting(
        self, positions: Sequence[int], alone: Sequence[Refusal | None], refusals: dict[str, Refusal]
    ) -> Sequence[int]:
        if not (self.made.others or self.state.nominated or any(alone)):
            return positions
        feasible = []
        nodes, nominated = self.state.columns.nodes, self.state.nominated
        for position, refusal in zip(positions, alone, strict=True):
            node = nodes[position]
            refusal = self.promised(node) if node.name in nominated else refusal or self.made.further(node)
            if refusal is not None:
                refusals[node.name] = refusal
            else:
                feasible.append(position)
        return feasible


def _placement(made: Filters, node: NodeInfo, rng: random.Random, *, seen: int = 0) -> Placement:
    return Placement(node.name, made.volumes.needs(node), made.devices.reservations(node.name, rng), seen)


def check_with_nominated(
    info: PodInfo, state: ClusterState, volumes: Volumes, made: Filters, node: NodeInfo
) -> Refusal | None:
    """The first refusal of a node, with its nominated pods and without them."""
    if state.nominated.get(node.name) and (fuller := with_nominated(info, state, node)) is not node:
        refusal = filters_for(info, state.with_node(fuller), volumes).check(fuller)
        if refusal is not None:
            return refusal
    return made.check(node)


def with_nominated(info: PodInfo, state: ClusterState, node: NodeInfo) -> NodeInfo:
    """The node with those nominated pods that have at least the priority of this one; itself if there are none."""
    promised = state.nominated.get(node.name, {}).values()
    others = [other for other in promised if other.priority >= info.priority and other.key != info.key]
    if not others:
        return node
    fuller = node.copy()
    for other in others:
        fuller.add(other)
    return fuller


def _enough(total: int) -> int:
    """The number of feasible nodes to find."""
    return max(ENOUGH, total * _PERCENT // 100)
