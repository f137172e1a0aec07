"""Views of devices, classes and claims for the scheduler, which reads more fields than controllers do."""

import msgspec

from kcm_cli.api.core import Condition, NodeSelector
from kcm_cli.api.devices import GROUP, Consumer, DeviceTaint, DeviceToleration, ResourcePool
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View

DeviceId = tuple[str, str, str]
"""Driver, pool, device."""


class Attribute(View, frozen=True, gc=False):
    """An attribute's value. One of the four fields is set."""

    integer: int | None = msgspec.field(default=None, name="int")
    boolean: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class ValidRange(View, frozen=True, gc=False):
    min: str | None = None
    max: str | None = None
    step: str | None = None


class RequestPolicy(View, frozen=True, gc=False):
    default: str | None = None
    valid_values: tuple[str, ...] = ()
    valid_range: ValidRange | None = None


class Capacity(View, frozen=True, gc=False):
    value: str = "0"
    request_policy: RequestPolicy | None = None


class Counter(View, frozen=True, gc=False):
    value: str = "0"


class CounterUse(View, frozen=True, gc=False):
    """DeviceCounterConsumption."""

    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class CounterSet(View, frozen=True, gc=False):
    name: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class Device(View, frozen=True, gc=False):
    name: str = ""
    attributes: dict[str, Attribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, Capacity] = msgspec.field(default_factory=dict)
    taints: tuple[DeviceTaint, ...] = ()
    consumes_counters: tuple[CounterUse, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    allow_multiple_allocations: bool = False
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()


class SliceSpec(View, frozen=True, gc=False):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()
    devices: tuple[Device, ...] = ()


class Slice(Object, frozen=True, gc=False, kw_only=True):
    spec: SliceSpec = SliceSpec()


class CelSelector(View, frozen=True, gc=False):
    expression: str = ""


class Selector(View, frozen=True, gc=False):
    cel: CelSelector | None = None


class CapacityRequirements(View, frozen=True, gc=False):
    requests: dict[str, str] = msgspec.field(default_factory=dict)


class Wanted(View, frozen=True, gc=False):
    """An exact request (without a name), or one of several alternatives."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[Selector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class Request(View, frozen=True, gc=False):
    name: str = ""
    exactly: Wanted | None = None
    first_available: tuple[Wanted, ...] = ()


class Constraint(View, frozen=True, gc=False):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimedDevices(View, frozen=True, gc=False):
    """The requests and constraints of a claim. Configurations are copied whole."""

    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Doc, ...] = ()


class ClaimSpec(View, frozen=True, gc=False):
    devices: ClaimedDevices = msgspec.field(default_factory=ClaimedDevices)


class Result(View, frozen=True, gc=False):
    """DeviceRequestAllocationResult."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, str] | None = None

    @property
    def id(self) -> DeviceId:
        return self.driver, self.pool, self.device


class AllocatedDevices(View, frozen=True, gc=False):
    results: tuple[Result, ...] = ()
    config: tuple[Doc, ...] = ()


class Allocation(View, frozen=True, gc=False):
    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class DeviceStatus(View, frozen=True, gc=False):
    """The driver's status of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()


class ClaimStatus(View, frozen=True, gc=False):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()


class Claim(Object, frozen=True, gc=False, kw_only=True):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class ClassSpec(View, frozen=True, gc=False):
    selectors: tuple[Selector, ...] = ()
    config: tuple[Doc, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True, gc=False, kw_only=True):
    spec: ClassSpec = msgspec.field(default_factory=ClassSpec)


CLAIMS = Resource(GVR(GROUP, "v1", "resourceclaims"), "ResourceClaim", Claim, keeps_raw=True)
SLICES = Resource(GVR(GROUP, "v1", "resourceslices"), "ResourceSlice", Slice, namespaced=False)
CLASSES = Resource(GVR(GROUP, "v1", "deviceclasses"), "DeviceClass", DeviceClass, namespaced=False)
