"""The scheduler's informers."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime

from kcm_cli.api.core import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, Namespace, PersistentVolumeClaim, Service
from kcm_cli.api.policy import PodDisruptionBudget
from kcm_cli.api.storage import (
    CSI_DRIVERS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    CsiDriver,
    PersistentVolume,
    StorageClass,
    VolumeAttachment,
)
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.informers import Informers
from kcm_cli.runtime.store import NODE, by_node
from kcm_cli.sandbox.scheduler.devices.state import DeviceState
from kcm_cli.sandbox.scheduler.devices.views import CLAIMS, CLASSES, SLICES, Claim, DeviceClass, Slice
from kcm_cli.sandbox.scheduler.preempt import BUDGETS
from kcm_cli.sandbox.scheduler.stores import Volumes, index_attachments
from kcm_cli.sandbox.scheduler.workloads import (
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    ReplicaOwner,
    SelectingByMap,
    Workloads,
)
from kcm_cli.sandbox.storage.views import CSI_NODES, CSI_STORAGE_CAPACITIES, CsiNode, CsiStorageCapacity
from kcm_cli.sandbox.views import NODES, PODS, SERVICES, SimulatedNode, SimulatedPod


@dataclass(frozen=True, slots=True)
class Listers:
    """The informers."""

    pods: Informer[SimulatedPod]
    nodes: Informer[SimulatedNode]
    namespaces: Informer[Namespace]
    claims: Informer[PersistentVolumeClaim]
    volumes: Informer[PersistentVolume]
    classes: Informer[StorageClass]
    budgets: Informer[PodDisruptionBudget]
    services: Informer[Service]
    replication_controllers: Informer[SelectingByMap]
    replica_sets: Informer[ReplicaOwner]
    stateful_sets: Informer[ReplicaOwner]
    csi_nodes: Informer[CsiNode]
    attachments: Informer[VolumeAttachment]
    drivers: Informer[CsiDriver]
    capacities: Informer[CsiStorageCapacity]

    resource_claims: Informer[Claim]
    device_classes: Informer[DeviceClass]
    slices: Informer[Slice]

    async def synced(self) -> None:
        """Wait until all informers have synced."""
        for field in fields(self):
            await getattr(self, field.name).synced.wait()

    def known_volumes(self) -> Volumes:
        """The stores about volumes."""
        return Volumes(
            self.claims.store,
            self.volumes.store,
            self.classes.store,
            self.csi_nodes.store,
            self.attachments.store,
            self.drivers.store,
            self.capacities.store,
        )

    def devices(self, now: Callable[[], datetime]) -> DeviceState:
        """The state of devices."""
        return DeviceState(self.resource_claims.store, self.device_classes.store, self.slices.store, now)

    def workloads(self) -> Workloads:
        """The stores of objects that select pods."""
        return Workloads(
            self.services.store,
            self.replication_controllers.store,
            self.replica_sets.store,
            self.stateful_sets.store,
        )


def listers(informers: Informers) -> Listers:
    """Get the informers."""
    pods = informers.get(PODS)
    pods.store.add_index(NODE, by_node)
    attachments = informers.get(VOLUME_ATTACHMENTS)
    index_attachments(attachments.store)
    return Listers(
        pods,
        informers.get(NODES),
        informers.get(NAMESPACES),
        informers.get(PERSISTENT_VOLUME_CLAIMS),
        informers.get(PERSISTENT_VOLUMES),
        informers.get(STORAGE_CLASSES),
        informers.get(BUDGETS),
        informers.get(SERVICES),
        informers.get(REPLICATION_CONTROLLERS),
        informers.get(REPLICA_SETS),
        informers.get(STATEFUL_SETS),
        informers.get(CSI_NODES),
        attachments,
        informers.get(CSI_DRIVERS),
        informers.get(CSI_STORAGE_CAPACITIES),
        informers.get(CLAIMS),
        informers.get(CLASSES),
        informers.get(SLICES),
    )
