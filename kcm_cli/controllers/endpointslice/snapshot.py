"""The snapshot of one Service for the endpointslice controller."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import Node, Pod, Service
from kcm_cli.api.discovery import Endpoint, EndpointSlice
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.ports import Ports
from kcm_cli.planning.endpoints.slices import Identity


class Member(msgspec.Struct, frozen=True):
    """A pod as an endpoint of one address type, and the ports of its slice."""

    ports: Ports
    identity: Identity
    endpoint: Endpoint


class Snapshot(msgspec.Struct, frozen=True):
    """A Service, the pods that it selects, their nodes as far as known, and its slices.

    ratios: each zone's share of the CPUs; None if that is unknown or there are fewer than two zones. hinted: whether
    the last sync set topology hints. prefer_same: whether the gate for PreferSameZone and PreferSameNode is on.
    trigger_time: RFC 3339, or empty. memo: results for the pods from the last sync, for one address type.
    """

    service: Service
    pods: tuple[Pod, ...]
    nodes: Mapping[str, Node]
    slices: tuple[EndpointSlice, ...]
    max_per_slice: int
    trigger_time: str = ""
    ratios: Mapping[str, float] | None = None
    hinted: bool = False
    prefer_same: bool = True
    memo: Memo[Member] = msgspec.field(default_factory=Memo)
