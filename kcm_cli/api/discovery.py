"""Views of the discovery.k8s.io group."""

from kcm_cli.api.core import ObjectReference
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
IPV4, IPV6 = "IPv4", "IPv6"


class SlicePort(View, frozen=True, gc=False):
    """discovery/v1 EndpointPort. An empty name differs from an absent one."""

    name: str | None = None
    protocol: str | None = None
    port: int | None = None
    app_protocol: str | None = None


class EndpointConditions(View, frozen=True, gc=False):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class HintName(View, frozen=True, gc=False):
    """discovery/v1 ForZone and ForNode."""

    name: str = ""


class EndpointHints(View, frozen=True, gc=False):
    """The zones and nodes whose proxies should use an endpoint."""

    for_zones: tuple[HintName, ...] = ()
    for_nodes: tuple[HintName, ...] = ()


class Endpoint(View, frozen=True, gc=False):
    """One backend of a Service."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None

    @property
    def ready(self) -> bool:
        return self.conditions.ready is True


class EndpointSlice(Object, frozen=True, gc=False, kw_only=True):
    address_type: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    ports: tuple[SlicePort, ...] = ()

    @property
    def members(self) -> tuple[Endpoint, ...]:
        """The endpoints; empty if the list is absent."""
        return self.endpoints or ()

    @property
    def service_key(self) -> str:
        """``namespace/name`` of the Service in its label; empty if the label is absent."""
        name = self.labels.get(SERVICE_NAME, "")
        return f"{self.namespace}/{name}" if name else ""


ENDPOINT_SLICES = Resource(
    GVR("discovery.k8s.io", "v1", "endpointslices"), "EndpointSlice", EndpointSlice, keeps_raw=True
)
