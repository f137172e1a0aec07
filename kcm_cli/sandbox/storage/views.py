"""The drivers of nodes and what they have room for, as the simulated storage driver and the scheduler read them."""

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View


class VolumeNodeResources(View, frozen=True, gc=False):
    count: int | None = None


class CsiNodeDriver(View, frozen=True, gc=False):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CsiNodeSpec(View, frozen=True, gc=False):
    drivers: tuple[CsiNodeDriver, ...] = ()


class CsiNode(Object, frozen=True, gc=False, kw_only=True):
    """Which drivers a node has, and how many volumes of each it can have attached."""

    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)


CSI_NODES = Resource(GVR("storage.k8s.io", "v1", "csinodes"), "CSINode", CsiNode, False)


class CsiStorageCapacity(Object, frozen=True, gc=False, kw_only=True):
    """How much a driver can provision of a class for the nodes that ``node_topology`` selects (None: none)."""

    storage_class_name: str = ""
    capacity: str | None = None
    maximum_volume_size: str | None = None
    node_topology: LabelSelector | None = None


CSI_STORAGE_CAPACITIES = Resource(
    GVR("storage.k8s.io", "v1", "csistoragecapacities"), "CSIStorageCapacity", CsiStorageCapacity
)
