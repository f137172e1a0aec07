"""The snapshot of one Endpoints object."""

import msgspec

from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.api.endpoints import Endpoints


class Snapshot(msgspec.Struct, frozen=True):
    """Endpoints that another client wrote, and the slices that mirror them."""

    endpoints: Endpoints
    slices: tuple[EndpointSlice, ...]
    max_per_subset: int
