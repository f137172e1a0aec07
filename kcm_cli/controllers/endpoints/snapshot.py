"""What the endpoints controller reads for one Service."""

from dataclasses import dataclass

from kcm_cli.api.core import Pod, Service
from kcm_cli.api.endpoints import Endpoints


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A Service, the pods that it selects, its Endpoints if there are any, and the time to say (RFC 3339)."""

    service: Service
    pods: tuple[Pod, ...]
    endpoints: Endpoints | None
    trigger_time: str = ""
