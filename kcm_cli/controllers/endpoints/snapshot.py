"""What the endpoints controller reads for one Service."""

import msgspec

from kcm_cli.api.core import Pod, Service
from kcm_cli.api.endpoints import EndpointAddress, EndpointPort, Endpoints
from kcm_cli.planning.endpoints.memo import Memo

Member = tuple[EndpointAddress | None, tuple[EndpointPort | None, ...]]
"""A pod's address (None: it has none of the Service's family), and its ports (one None: it needs none)."""


class Snapshot(msgspec.Struct, frozen=True):
    """A Service, the pods that it selects, its Endpoints if there are any, and the time to say (RFC 3339).

    ``memo``: what the last sync made of the pods.
    """

    service: Service
    pods: tuple[Pod, ...]
    endpoints: Endpoints | None
    trigger_time: str = ""
    memo: Memo[Member] = msgspec.field(default_factory=Memo)
