"""Sets hints by spec.trafficDistribution: each endpoint is hinted for its own zone or node.

upstream: staging/src/k8s.io/endpointslice/trafficdist/trafficdist.go
"""

from collections.abc import Sequence

import msgspec

from kcm_cli.api.core import Service
from kcm_cli.api.discovery import Endpoint, EndpointHints, EndpointSlice, HintName
from kcm_cli.planning.endpoints.slices import Changes, Draft

PREFER_CLOSE, PREFER_SAME_ZONE, PREFER_SAME_NODE = "PreferClose", "PreferSameZone", "PreferSameNode"
NO_HINTS = EndpointHints()


def distribution(service: Service, *, prefer_same: bool) -> str:
    """The Service's traffic distribution; empty if it is absent or unknown."""
    value = service.spec.traffic_distribution or ""
    known = (PREFER_CLOSE, PREFER_SAME_ZONE, PREFER_SAME_NODE) if prefer_same else (PREFER_CLOSE,)
    return value if value in known else ""


def distribute(changes: Changes, value: str) -> None:
    """Set hints on all ready endpoints. Slices with wrong hints are updated."""
    by_node = value == PREFER_SAME_NODE
    for slice_ in tuple(changes.unchanged):
        if any(_wrong(endpoint, by_node=by_node) for endpoint in slice_.members):
            touch(changes, slice_)
    for draft in (*changes.create, *changes.update):
        draft.endpoints = [_hinted(endpoint, by_node=by_node) for endpoint in draft.endpoints]


def remove_hints(changes: Changes) -> None:
    """Remove all hints. Slices that had some are updated."""
    for slice_ in tuple(changes.unchanged):
        if any(endpoint.hints is not None for endpoint in slice_.members):
            touch(changes, slice_)
    for draft in (*changes.create, *changes.update):
        draft.endpoints = [unhinted(endpoint) for endpoint in draft.endpoints]


def touch(changes: Changes, slice_: EndpointSlice) -> None:
    """Move a slice from the unchanged ones to the updates."""
    for index, other in enumerate(changes.unchanged):
        if other is slice_:
            del changes.unchanged[index]
            changes.update.append(
                Draft(
                    other.address_type,
                    other.ports,
                    dict(other.labels),
                    list(other.members),
                    dict(other.annotations),
                    other,
                )
            )
            return


def unhinted(endpoint: Endpoint) -> Endpoint:
    return endpoint if endpoint.hints is None else msgspec.structs.replace(endpoint, hints=None)


def for_zone(endpoint: Endpoint, zone: str) -> Endpoint:
    """The endpoint with a hint for this zone."""
    return msgspec.structs.replace(endpoint, hints=EndpointHints((HintName(zone),)))


def zones_of(endpoint: Endpoint) -> Sequence[str]:
    """The zones of an endpoint's hints."""
    return [zone.name for zone in endpoint.hints.for_zones] if endpoint.hints is not None else ()


def _wanted(endpoint: Endpoint, *, by_node: bool) -> EndpointHints:
    zones = (HintName(endpoint.zone),) if endpoint.zone is not None else ()
    nodes = (HintName(endpoint.node_name),) if by_node and endpoint.node_name is not None else ()
    return EndpointHints(zones, nodes)


def _wrong(endpoint: Endpoint, *, by_node: bool) -> bool:
    return endpoint.ready and (endpoint.hints or NO_HINTS) != _wanted(endpoint, by_node=by_node)


def _hinted(endpoint: Endpoint, *, by_node: bool) -> Endpoint:
    if not endpoint.ready:
        return endpoint
    wanted = _wanted(endpoint, by_node=by_node)
    hints = wanted if wanted != NO_HINTS else None
    return endpoint if endpoint.hints == hints else msgspec.structs.replace(endpoint, hints=hints)
