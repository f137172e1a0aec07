"""The snapshot of one Service for the endpoints controller."""

import msgspec

from kcm_cli.api.core import Pod, Service
from kcm_cli.api.endpoints import EndpointAddress, EndpointPort, Endpoints
from kcm_cli.planning.endpoints.memo import Memo

Member = tuple[EndpointAddress | None, tuple[EndpointPort | None, ...]]
"""A pod's address (None: it has none of the Service's family), and its ports (one None: it needs none)."""


class Snapshot(msgspec.Struct, frozen=True):
    """A Service, the pods that it selects, its Endpoints, and the trigger time (RFC 3339).

    memo: results for the pods from the last sync.
    """

    service: Service
    pods: tuple[Pod, ...]
    endpoints: Endpoints | None
    trigger_time: str = ""
    memo: Memo[Member] = msgspec.field(default_factory=Memo)
