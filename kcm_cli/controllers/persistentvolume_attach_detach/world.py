"""Updates the desired and the actual state of the world from the caches.

Changes are ignored before ``populate``, which reads everything once. After that events update the states: what a pod
needs depends on the pod, its node, its claims with their volumes, and the drivers. ``read_pods`` repeats it for all
pods now and then, so that what slipped through does not stay wrong.

upstream: pkg/controller/volume/attachdetach/attach_detach_controller.go, util/util.go, populator
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from kcm_cli.api.core import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, Node, Pod
from kcm_cli.api.storage import (
    CSI_DRIVERS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
    CsiDriver,
    PersistentVolume,
    VolumeAttachment,
)
from kcm_cli.controllers.persistentvolume_attach_detach import plan
from kcm_cli.controllers.persistentvolume_attach_detach.flex import FlexDrivers
from kcm_cli.controllers.persistentvolume_attach_detach.metrics import AttachDetachMetrics
from kcm_cli.controllers.persistentvolume_attach_detach.node_status import NodeStatuses
from kcm_cli.controllers.persistentvolume_attach_detach.states import ActualState, DesiredState
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Keys
from kcm_cli.engine.passes import OBJECTS, for_each
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.planning.pods import is_stopped
from kcm_cli.planning.volumes.attachable import (
    CSI,
    PLUGINS,
    SEPARATOR,
    AttachableVolume,
    attachment_name,
    is_attached_by,
    may_be_attached,
    of_pod_volume,
    of_volume,
    plugin_of,
)
from kcm_cli.runtime.informer import Informer
from kcm_cli.runtime.store import NODE, by_node
from kcm_cli.runtime.turns import in_turns

T = TypeVar("T", bound=Object)
FLEX = "FlexVolumes that pods describe"


def _describes_flex(pod: Pod) -> tuple[str, ...]:
    volumes = pod.spec.volumes
    return ("",) if volumes and any(volume.flex_volume is not None for volume in volumes) else ()


class World:
    """The state of the world. ``volumes`` and ``node_queue``: the queues of volumes and nodes to reconcile.

    upstream: desiredStateOfWorldPopulator.
    """

    def __init__(self, context: ControllerContext, metrics: AttachDetachMetrics, flex_folder: str) -> None:
        self.flex = FlexDrivers(flex_folder, self._flex_drivers)
        self._name = context.name
        self.desired = DesiredState()
        self.actual = ActualState()
        self.volumes, self.node_queue, *_ = context.queues
        self._metrics = metrics
        self._populated = False
        self._pods = context.cache(PODS)
        self.nodes = context.cache(NODES)
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = context.cache(PERSISTENT_VOLUMES)
        self._drivers = context.cache(CSI_DRIVERS)
        self.attachments = context.cache(VOLUME_ATTACHMENTS)
        self.informers = (self._pods, self.nodes, self._claims, self._volumes, self._drivers, self.attachments)
        self.statuses = NodeStatuses(context.client, self.nodes.store, self.actual)
        self._pods.store.add_index(CLAIM, claims_of)
        self._pods.store.add_index(FLEX, _describes_flex)
        self._pods.store.add_index(NODE, by_node)

    def is_attached(self, volume: AttachableVolume) -> bool:
        """Whether a volume has to be attached, according to its CSIDriver or FlexVolume driver."""
        if volume.options is not None:
            return self.flex.attaches(volume.plugin)
        return is_attached_by(self._drivers.store.get(volume.driver) if volume.driver else None)

    def may_be_needed(self, name: str, node: str) -> bool:
        """Whether a pod may need a volume on a node though none is known to: the pod, its claim, or the volume of that
        claim could never be decoded. That is assumed unless the volume is bound to another claim."""
        namespaces = {pod.metadata.namespace for pod in self._pods.store.unseen()}
        if not (namespaces or self._claims.store.unseen() or self._volumes.store.unseen()):
            return False
        own = self._persistent_volume(name, node)
        volume = self._volumes.store.get(own)
        ref = volume.spec.claim_ref if volume is not None else None
        if namespaces and (volume is None or (ref is not None and ref.namespace in namespaces)):
            return True
        pods = (pod for pod in self._pods.store.by_index(NODE, node) if not is_stopped(pod))
        return any(self._may_be_of(key, own, volume) for pod in pods for key in claims_of(pod))

    def _may_be_of(self, claim: str, name: str, volume: PersistentVolume | None) -> bool:
        """Whether a volume may be that of a claim (a key), where one of both could never be decoded. ``name``: of the
        PersistentVolume, empty if that is not known; ``volume``: None if that is not known, or could not be decoded."""
        if self._claims.store.is_unseen(claim):
            return volume is None or claim in self.claim_of(volume)
        known = self._claims.store.get(claim)
        named = known.spec.volume_name if known is not None else ""
        return self._volumes.store.is_unseen(named) and name in ("", named)

    def _persistent_volume(self, name: str, node: str) -> str:
        """The name of an attached volume's PersistentVolume, from its pods or its VolumeAttachment."""
        found = self.actual.get(name)
        if found is not None and found.volume is not None:
            return found.volume.name
        plugin, rest = plugin_of(name)
        driver, _, handle = rest.partition(SEPARATOR)
        attachment = self.attachments.store.get(attachment_name(driver, handle, node)) if plugin == CSI else None
        return (attachment.spec.source.persistent_volume_name or "") if attachment is not None else ""

    async def sync_claim(self, key: str) -> None:
        """Reconcile the pods that use a claim, which may be bound now. Yields to the loop in between."""
        async for seen in in_turns(self._pods.store.by_index(CLAIM, key), OBJECTS):
            pod = self._pods.store.get(seen.key)
            if pod is not None:
                self._queue_volumes(self.pod_changed(pod))

    # -- the start

    async def populate(self) -> None:
        """Read the actual state from nodes and attachments, and the desired state from pods. Yields to the loop in
        between.

        Changes in the meantime are handled, and each object is read from the cache at its turn. Nothing is attached or
        detached before the end.
        """
        self._populated = True
        await self._each(self.nodes, self._read_node)
        await self._each(self.attachments, self._read_attachment)
        await self._each(self._pods, self._read_pod)
        async for found in in_turns(self.actual, OBJECTS):
            self.volumes.add(found.name)

    async def _each(self, informer: Informer[T], read: Callable[[T], None]) -> None:
        async def step(seen: T) -> None:
            now = informer.store.get(seen.key)
            if now is not None:
                read(now)

        await for_each(self._name, informer.store.list(), step)

    def _read_node(self, node: Node) -> None:
        for volume in node.status.volumes_attached:
            self.actual.attached(volume.name, None, node.name, volume.device_path)
        self.actual.set_in_use(node.name, node.status.volumes_in_use)
        self._manage(node)

    def _read_attachment(self, attachment: VolumeAttachment) -> None:
        """Mark volumes of VolumeAttachments that nodes do not report as uncertain.

        Also those of CSI drivers whose volumes are not attached: the attachment may be older than the CSIDriver.
        """
        node = attachment.spec.node_name
        known = self._volumes.store.get(attachment.spec.source.persistent_volume_name or "")
        volume = of_volume(known) if known is not None else None
        if volume is None or not (volume.driver or self.is_attached(volume)):
            return
        if self.actual.attachment(volume.unique_name, node) is None:
            self.actual.uncertain(volume.unique_name, volume, node)

    def _read_pod(self, pod: Pod) -> None:
        self._queue_volumes(self.pod_changed(pod))
        self._name_attached(pod)

    def _name_attached(self, pod: Pod) -> None:
        """Complete attached volumes from their pods, since nodes list only their names."""
        for volume in self._attachable(pod):
            at = self.actual.attachment(volume.unique_name, pod.spec.node_name)
            found = self.actual.get(volume.unique_name)
            if at is not None and at.confirmed and found is not None:
                self.actual.attached(volume.unique_name, volume, pod.spec.node_name, found.device)

    async def read_pods(self) -> None:
        """Compare the desired state with the cached pods, and forget deleted nodes. upstream: findAndRemoveDeletedPods,
        findAndAddActivePods."""
        if not self._populated:
            return
        self._forget_nodes()
        gone = self.desired.pods()

        def read(pod: Pod) -> None:
            gone.discard(pod.uid)
            self._queue_volumes(self.pod_changed(pod))

        await self._each(self._pods, read)
        for uid in gone:
            self._queue_volumes(self.desired.remove_pod(uid))

    # -- events

    def pod_changed(self, pod: Pod) -> list[str]:
        """The volumes whose need by the pod changed."""
        if not self._populated or not pod.spec.node_name or not may_be_attached(pod):
            return []
        found = list(self._found(pod))
        volumes = [volume for volume in found if self.is_attached(volume)]
        counted = [volume.full_plugin for volume in found if volume.driver or volume in volumes]
        self._metrics.pod(pod.uid, pod.spec.node_name, counted)  # as upstream, also those that are not attached
        if is_stopped(pod):
            return list(self.desired.remove_pod(pod.uid))
        if self.desired.manages(pod.spec.node_name):
            return [volume.unique_name for volume in volumes if self.desired.add(pod, volume)]
        return []

    def pod_deleted(self, pod: Pod) -> Keys:
        """The volumes that a pod needed."""
        self._metrics.pod(pod.uid, "", [])
        return self.desired.remove_pod(pod.uid)

    def node_reported(self, node: Node) -> Keys:
        """The node's name if its status does not list the attached volumes: it was recreated, or its cached version was
        stale at the start."""
        return (node.name,) if self._populated and self.statuses.differs(node) else ()

    def node_changed(self, node: Node) -> Keys:
        """The volumes whose need on the node changed."""
        if not self._populated:
            return ()
        names: list[str] = []
        self.actual.set_in_use(node.name, node.status.volumes_in_use)
        if self._manage(node):
            for pod in self._pods.store.by_index(NODE, node.name):
                names += self.pod_changed(pod)
        return names + self._unneeded_on(node.name)

    def node_deleted(self, node: Node) -> Keys:
        """The volumes that were attached to a node."""
        if not self._populated:
            return ()
        self.actual.set_in_use(node.name, node.status.volumes_in_use)
        names = self._unneeded_on(node.name)
        self._forget_node(node.name)
        return names

    def claim_changed(self, claim: Object) -> Keys:
        """The claim's key."""
        return (claim.key,) if self._populated else ()

    def claim_of(self, volume: PersistentVolume) -> Keys:
        """The key of the claim that a volume is bound to."""
        ref = volume.spec.claim_ref
        return (f"{ref.namespace}/{ref.name}",) if ref is not None and self._populated else ()

    def driver_changed(self, driver: CsiDriver) -> Keys:
        """The driver's name."""
        return (driver.name,) if self._populated else ()

    async def sync_driver(self, key: str) -> None:
        """Reconcile a driver's volumes, which may, or may not, have to be attached now."""
        for wanted in list(self.desired):
            if wanted.volume.driver == key and not self.is_attached(wanted.volume):
                self.desired.remove_volume(wanted.volume.unique_name)
                self.volumes.add(wanted.volume.unique_name)
        await self._each(self._pods, lambda pod: self._queue_volumes(self.pod_changed(pod)))

    def _flex_drivers(self) -> None:
        """Reconcile the volumes of FlexVolume drivers after drivers were added or removed.

        This does not await: until their pods are read again, it seems that no pod needs these volumes.
        """
        if not self._populated:
            return
        for wanted in self.desired:
            if wanted.volume.options is not None and not self.is_attached(wanted.volume):
                self.desired.remove_volume(wanted.volume.unique_name)
                self.volumes.add(wanted.volume.unique_name)
        for pod in {pod.uid: pod for pod in self._flex_pods()}.values():
            self._queue_volumes(self.pod_changed(pod))
        self._queue_volumes(found.name for found in self.actual if plugin_of(found.name)[0] not in PLUGINS)

    # -- parts

    def _flex_pods(self) -> Iterator[Pod]:
        """The pods that may have a volume of a FlexVolume driver."""
        yield from self._pods.store.by_index(FLEX, "")
        for volume in self._volumes.store:
            ref = volume.spec.claim_ref
            if volume.spec.flex_volume is not None and ref is not None:
                yield from self._pods.store.by_index(CLAIM, f"{ref.namespace}/{ref.name}")

    def _forget_nodes(self) -> None:
        """Forget the deleted nodes that had volumes when they were deleted, and have none any more."""
        for name in self.desired.known_nodes() | self.actual.known_nodes() | self.statuses.known_nodes():
            if self.nodes.store.get(name) is None and not self.nodes.store.is_unseen(name):
                self._forget_node(name)

    def _forget_node(self, name: str) -> None:
        """Forget a deleted node, except what pods need and what is attached there."""
        self.desired.remove_node(name)
        self.statuses.forget(name)
        self.actual.forget_node(name)

    def _manage(self, node: Node) -> bool:
        """Manage a node if its annotation requests it. Returns whether it was not managed before."""
        return plan.MANAGED in node.annotations and self.desired.add_node(node.name)

    def _attachable(self, pod: Pod) -> Iterator[AttachableVolume]:
        """The bound volumes of a pod that have to be attached."""
        return (found for found in self._found(pod) if self.is_attached(found))

    def _found(self, pod: Pod) -> Iterator[AttachableVolume]:
        """The bound volumes of a pod, also of drivers whose volumes are not attached."""
        for volume in pod.spec.volumes:
            found = of_pod_volume(pod, volume, self._claims.store.get, self._volumes.store.get)
            if found is not None:
                yield found

    def _unneeded_on(self, node: str) -> list[str]:
        return [name for name in self.actual.on_node(node) if self.desired.get(name, node) is None]

    def _queue_volumes(self, names: Iterable[str]) -> None:
        for name in names:
            self.volumes.add(name)
