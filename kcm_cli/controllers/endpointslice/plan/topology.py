"""Sets hints by the annotation service.kubernetes.io/topology-mode: each zone gets endpoints in proportion to its CPUs.

Endpoints are hinted for their own zone first; zones with more than their share then give some to zones with less. If
this would overload a zone, no endpoint gets hints, and an Event says why.

upstream: staging/src/k8s.io/endpointslice/topologycache
"""

import math
from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.api.core import Node
from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.api.well_known import TOPOLOGY_HINTS, TOPOLOGY_MODE, ZONE
from kcm_cli.controllers.endpointslice.plan.distribution import for_zone, touch, zones_of
from kcm_cli.machinery.quantity import Quantity, is_quantity, make, parse
from kcm_cli.planning.endpoints.slices import Changes, Draft
from kcm_cli.planning.nodes import is_ready

OVERLOAD = 0.2
"""How much more than its share of the traffic an endpoint may get."""
_EXCLUDED = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

ENABLED = "Topology Aware Hints has been enabled"
DISABLED = "Topology Aware Hints has been disabled"
NO_NODE_INFO = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
NO_ZONE = "One or more endpoints do not have a zone specified"
NO_HINTS = "No hints allocated for zones"
TOO_FEW = "Insufficient number of endpoints"
OVERLOADED = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"

Ratios = Mapping[str, float]
Counts = dict[str, int]


class Allocation(msgspec.Struct, frozen=True):
    """The number of endpoints that a zone should have."""

    minimum: int
    maximum: int
    desired: float


class Unhintable(Exception):
    """Hints cannot be set; the text says why.

    endpoints: the number of ready endpoints if the nodes do not allow hints for so many; else None.
    """

    def __init__(self, text: str, endpoints: int | None = None) -> None:
        super().__init__(text)
        self.endpoints = endpoints


def wants_hints(annotations: Mapping[str, str]) -> bool:
    """Whether a Service requests hints. The deprecated annotation takes precedence."""
    value = annotations.get(TOPOLOGY_HINTS, annotations.get(TOPOLOGY_MODE))
    return value in ("Auto", "auto")


def filed_cpus(node: Node) -> tuple[str, ...]:
    """Index: CPUs and zone of a ready worker node, as ``cpus/zone``; either may be empty. All others have no part."""
    if any(label in node.labels for label in _EXCLUDED) or not is_ready(node):
        return ()
    return (f"{(node.status.allocatable or {}).get('cpu', '')}/{node.labels.get(ZONE, '')}",)


def zone_ratios(nodes: Mapping[str, int]) -> Ratios | None:
    """Each zone's share of the CPUs of all ready worker nodes. None if the zone or CPUs of a node are unknown, or if
    there are fewer than two zones.

    nodes: their number by ``filed_cpus``: few values, of thousands of nodes.
    """
    by_zone: dict[str, Quantity] = {}
    for filed, count in nodes.items():
        text, _, zone = filed.partition("/")
        cpus = parse(text) if is_quantity(text) else None
        if not zone or not cpus:
            return None
        by_zone[zone] = by_zone.get(zone, make(0)) + cpus * count
    total = sum(by_zone.values(), make(0))
    if not total or len(by_zone) < 2:
        return None
    return {zone: cpus.milli_value() / total.milli_value() for zone, cpus in by_zone.items()}


def overloaded(counts: Mapping[str, int], ratios: Ratios | None) -> bool:
    """Whether a zone has too few endpoints for its share of the CPUs."""
    if not counts:
        return False
    if not ratios:
        return True
    total = float(sum(counts.values()))
    return any(counts.get(zone, -1) < math.ceil(total * ratio * (1 / (1 + OVERLOAD))) for zone, ratio in ratios.items())


def hintable(endpoints: int, ratios: Ratios | None) -> bool:
    """Whether the nodes allow hints for this number of ready endpoints."""
    try:
        _allocate(endpoints, ratios)
    except Unhintable:
        return False
    return True


def add_hints(changes: Changes, ratios: Ratios | None) -> Counts:
    """Set hints; returns the number of endpoints by zone. Raises Unhintable, after which hints have to be removed."""
    allocations = _allocate(_ready_endpoints(changes), ratios)
    counts = _settled(changes, allocations)
    drafts = (*changes.create, *changes.update)
    for draft in drafts:
        for index, endpoint in enumerate(draft.endpoints):
            if not endpoint.ready:
                continue
            if not endpoint.zone:
                raise Unhintable(NO_ZONE)
            counts[endpoint.zone] = counts.get(endpoint.zone, 0) + 1
            draft.endpoints[index] = for_zone(endpoint, endpoint.zone)
    giving, receiving = exchanges(allocations, counts)
    _redistribute(drafts, giving, receiving, counts)
    if not counts:
        raise Unhintable(NO_HINTS)
    return counts


def _ready_endpoints(changes: Changes) -> int:
    drafted = sum(endpoint.ready for draft in (*changes.create, *changes.update) for endpoint in draft.endpoints)
    return drafted + sum(endpoint.ready for slice_ in changes.unchanged for endpoint in slice_.members)


def _allocate(endpoints: int, ratios: Ratios | None) -> dict[str, Allocation]:
    if ratios is None:
        raise Unhintable(NO_NODE_INFO, endpoints)
    about = f"({endpoints} endpoints, {len(ratios)} zones)"
    if len(ratios) > endpoints:
        raise Unhintable(f"{TOO_FEW} {about}", endpoints)
    minima = {zone: math.ceil(ratio * endpoints * (1 / (1 + OVERLOAD))) for zone, ratio in ratios.items()}
    spare = endpoints - sum(minima.values())
    if spare < 0:
        raise Unhintable(f"{OVERLOADED} {about}", endpoints)
    return {
        zone: Allocation(minimum, minimum + spare, max(ratios[zone] * endpoints, float(minimum)))
        for zone, minimum in minima.items()
    }


def _settled(changes: Changes, allocations: Mapping[str, Allocation]) -> Counts:
    """The number of endpoints by zone in slices that may keep their hints. The other slices are updated."""
    counts: Counts = {}
    for slice_ in tuple(changes.unchanged):
        own = _hints_of(slice_, counts, allocations)
        if own is None:
            touch(changes, slice_)
            continue
        for zone, number in own.items():
            counts[zone] = counts.get(zone, 0) + number
    return counts


def _hints_of(slice_: EndpointSlice, counts: Counts, allocations: Mapping[str, Allocation]) -> Counts | None:
    """The number of hints by zone in a slice. None if an endpoint has none, or one for an unknown zone, or if a zone
    would have too many."""
    own: Counts = {}
    for endpoint in slice_.members:
        if not endpoint.ready:
            continue
        zones = zones_of(endpoint)
        if not zones or any(zone not in allocations for zone in zones):
            return None
        for zone in zones:
            own[zone] = own.get(zone, 0) + 1
    if any(number + counts.get(zone, 0) > allocations[zone].maximum for zone, number in own.items()):
        return None
    return own


def exchanges(allocations: Mapping[str, Allocation], counts: Mapping[str, int]) -> tuple[Counts, Counts]:
    """(endpoints that each zone gives to others, endpoints that each zone receives)."""
    surplus = {zone: counts.get(zone, 0) - allocation.desired for zone, allocation in sorted(allocations.items())}
    givers = {zone: amount for zone, amount in surplus.items() if amount > 0}
    takers = {zone: -amount for zone, amount in surplus.items() if amount < 0}
    giving: Counts = {}
    receiving: Counts = {}
    while givers and takers:
        giver = max(givers, key=givers.__getitem__)
        taker = max(takers, key=takers.__getitem__)
        give, take = givers[giver], takers[taker]
        if (give < 1.0 and take < 1.0) or give < 0.5 or take < 0.5:
            break
        giving[giver] = giving.get(giver, 0) + 1
        receiving[taker] = receiving.get(taker, 0) + 1
        givers[giver] -= 1
        takers[taker] -= 1
    return giving, receiving


def _redistribute(drafts: Iterable[Draft], giving: Counts, receiving: Counts, counts: Counts) -> None:
    """Hint endpoints of giving zones for receiving zones."""
    for draft in drafts:
        for index, endpoint in enumerate(draft.endpoints):
            giver = endpoint.zone or ""
            if not endpoint.ready or giving.get(giver, 0) <= 0:
                continue
            taker = next((zone for zone in sorted(receiving) if receiving[zone] > 0), "")
            if not taker:
                return
            draft.endpoints[index] = for_zone(endpoint, taker)
            giving[giver] -= 1
            receiving[taker] -= 1
            counts[taker] = counts.get(taker, 0) + 1
            counts[giver] -= 1
