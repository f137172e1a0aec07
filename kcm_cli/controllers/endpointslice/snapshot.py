"""What the endpointslice controller reads for one Service."""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import Node, Pod, Service
from kcm_cli.api.discovery import Endpoint, EndpointSlice
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.ports import Ports
from kcm_cli.planning.endpoints.slices import Identity


class Member(msgspec.Struct, frozen=True):
    """A pod as an endpoint of one address type, and the ports of the slices that it belongs into."""

    ports: Ports
    identity: Identity
    endpoint: Endpoint


class Snapshot(msgspec.Struct, frozen=True):
    """A Service, the pods that it selects, the nodes that those name (as far as known), and its slices.

    ``ratios``: each zone's share of the CPUs; None while that is not known of all nodes, or there are no two zones.
    ``hinted``: whether the last sync gave topology hints. ``prefer_same``: whether the gate for PreferSameZone and
    PreferSameNode is on. ``trigger_time`` is RFC 3339, empty for none.
    ``memo``: what the last sync made of the pods, for this address type.
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
