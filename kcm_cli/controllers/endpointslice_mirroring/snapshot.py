"""What the endpointslice-mirroring controller reads for one Endpoints object."""

from dataclasses import dataclass

from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.api.endpoints import Endpoints


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Endpoints that another client wrote, and the slices that mirror them."""

    endpoints: Endpoints
    slices: tuple[EndpointSlice, ...]
    max_per_subset: int
