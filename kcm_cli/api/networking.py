"""Views of the networking.k8s.io group."""

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.meta import Object, View


class ServiceCIDRSpec(View, frozen=True, gc=False):
    cidrs: tuple[str, ...] = ()


class ServiceCIDRStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class ServiceCIDR(Object, frozen=True, gc=False, kw_only=True):
    spec: ServiceCIDRSpec = ServiceCIDRSpec()
    status: ServiceCIDRStatus = ServiceCIDRStatus()


class IPAddress(Object, frozen=True, gc=False, kw_only=True):
    """An allocated address, which is the object's name."""


SERVICE_CIDRS = Resource(GVR("networking.k8s.io", "v1", "servicecidrs"), "ServiceCIDR", ServiceCIDR, namespaced=False)
IP_ADDRESSES = Resource(GVR("networking.k8s.io", "v1", "ipaddresses"), "IPAddress", IPAddress, namespaced=False)
