"""Views of CSINodes and CSIStorageCapacities, for the simulated storage driver and the scheduler."""

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
    """The drivers of a node, each with the maximum number of its volumes."""

    spec: CsiNodeSpec = msgspec.field(default_factory=CsiNodeSpec)


CSI_NODES = Resource(GVR("storage.k8s.io", "v1", "csinodes"), "CSINode", CsiNode, False)


class CsiStorageCapacity(Object, frozen=True, gc=False, kw_only=True):
    """The capacity of a class on the nodes that ``node_topology`` selects (None: no node)."""

    storage_class_name: str = ""
    capacity: str | None = None
    maximum_volume_size: str | None = None
    node_topology: LabelSelector | None = None


CSI_STORAGE_CAPACITIES = Resource(
    GVR("storage.k8s.io", "v1", "csistoragecapacities"), "CSIStorageCapacity", CsiStorageCapacity
)
