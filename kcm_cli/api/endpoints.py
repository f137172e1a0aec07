"""Views of core/v1 Endpoints."""

from kcm_cli.api.core import ObjectReference
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class EndpointAddress(View, frozen=True, gc=False):
    ip: str = ""
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(View, frozen=True, gc=False):
    name: str = ""
    port: int = 0
    protocol: str = ""
    app_protocol: str | None = None


class EndpointSubset(View, frozen=True, gc=False):
    """Addresses that all serve on all of the ports."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[EndpointPort, ...] = ()


class Endpoints(Object, frozen=True, gc=False, kw_only=True):
    subsets: tuple[EndpointSubset, ...] = ()


ENDPOINTS = Resource(GVR("", "v1", "endpoints"), "Endpoints", Endpoints, keeps_raw=True)
