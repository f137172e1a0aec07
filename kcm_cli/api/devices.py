"""Views of the resource.k8s.io group: claims of devices, and the devices that drivers publish."""

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import Object, View
from kcm_cli.machinery.raw_fields import RawField

GROUP = "resource.k8s.io"


class DeviceToleration(View, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class ExactDeviceRequest(View, frozen=True, gc=False):
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 1
    admin_access: bool = False


class DeviceSubRequest(View, frozen=True, gc=False):
    name: str = ""
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 1


class DeviceRequest(View, frozen=True, gc=False):
    """A request. Of ``first_available`` only the presence matters, since alternatives have no adminAccess."""

    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceClaim(View, frozen=True, gc=False):
    requests: tuple[DeviceRequest, ...] = ()


class ResourceClaimSpec(View, frozen=True, gc=False):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(View, frozen=True, gc=False):
    """DeviceRequestAllocationResult."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()


class AllocatedDevices(View, frozen=True, gc=False):
    results: tuple[AllocatedDevice, ...] = ()


class Allocation(View, frozen=True, gc=False):
    devices: AllocatedDevices = AllocatedDevices()


class Consumer(View, frozen=True, gc=False):
    """ResourceClaimConsumerReference."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(View, frozen=True, gc=False):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Object, frozen=True, gc=False, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class TemplateMeta(View, frozen=True, gc=False):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class DeviceClassSpec(View, frozen=True, gc=False):
    """The extended resource by which pods can request devices of the class."""

    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, gc=False, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class ResourceClaimTemplateSpec(View, frozen=True, gc=False):
    metadata: TemplateMeta = msgspec.field(default_factory=TemplateMeta)
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, gc=False, kw_only=True):
    spec: ResourceClaimTemplateSpec = msgspec.field(default_factory=ResourceClaimTemplateSpec)


class _Copied(View, frozen=True, gc=False):
    spec: msgspec.Raw = msgspec.Raw(b"{}")


def spec_of(template: ResourceClaimTemplate) -> msgspec.Raw:
    """The spec for claims, in the bytes of the template. Raises ValueError for a view without its raw document."""
    if template.raw is None:
        raise ValueError(f"ResourceClaimTemplate {template.key} keeps no raw document: it has no spec to copy")
    return codec.decode(codec.decode(template.raw, _Copied).spec, _Copied).spec


class DeviceTaint(View, frozen=True, gc=False):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(View, frozen=True, gc=False):
    """A device's name and taints."""

    name: str = ""
    taints: tuple[DeviceTaint, ...] = ()


class ResourcePool(View, frozen=True, gc=False):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(View, frozen=True, gc=False):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    devices: tuple[Device, ...] = ()


class ResourceSlice(Object, frozen=True, gc=False, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(View, frozen=True, gc=False):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(View, frozen=True, gc=False):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Object, frozen=True, gc=False, kw_only=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()


class ResourcePoolStatusRequestSpec(View, frozen=True, gc=False):
    driver: str = ""
    pool_name: str | None = None
    limit: int | None = None


class ResourcePoolStatusRequestStatus(View, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class ResourcePoolStatusRequest(Object, frozen=True, gc=False, kw_only=True):
    """A request. It is answered once, by setting its status."""

    spec: ResourcePoolStatusRequestSpec = ResourcePoolStatusRequestSpec()
    status: ResourcePoolStatusRequestStatus | None = None


_PARAMETERS = ("config", "opaque", "parameters")
_RAW_FIELDS = (
    RawField(("spec", "devices", *_PARAMETERS), (2, 1, 3, 2, 1, 2, 1)),
    RawField(("status", "allocation", "devices", *_PARAMETERS), (3, 1, 1, 2, 3, 1, 2, 1)),
    RawField(("status", "devices", "data"), (3, 4, 5, 1)),
)
RESOURCE_CLAIMS = Resource(
    GVR(GROUP, "v1", "resourceclaims"), "ResourceClaim", ResourceClaim, keeps_raw=True, raw_fields=_RAW_FIELDS
)
RESOURCE_CLAIM_TEMPLATES = Resource(
    GVR(GROUP, "v1", "resourceclaimtemplates"),
    "ResourceClaimTemplate",
    ResourceClaimTemplate,
    keeps_raw=True,
    raw_fields=(RawField(("spec", "spec", "devices", *_PARAMETERS), (2, 2, 1, 3, 2, 1, 2, 1)),),
)
DEVICE_CLASSES = Resource(GVR(GROUP, "v1", "deviceclasses"), "DeviceClass", DeviceClass, namespaced=False)
RESOURCE_SLICES = Resource(GVR(GROUP, "v1", "resourceslices"), "ResourceSlice", ResourceSlice, namespaced=False)
DEVICE_TAINT_RULES = Resource(
    GVR(GROUP, "v1beta2", "devicetaintrules"), "DeviceTaintRule", DeviceTaintRule, namespaced=False
)
RESOURCE_POOL_STATUS_REQUESTS = Resource(
    GVR(GROUP, "v1alpha3", "resourcepoolstatusrequests"),
    "ResourcePoolStatusRequest",
    ResourcePoolStatusRequest,
    namespaced=False,
    keeps_raw=True,
)
