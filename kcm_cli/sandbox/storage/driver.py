"""The simulated storage driver: provisions, attaches, resizes and deletes the volumes of its StorageClasses.

It replaces the sidecars of a CSI driver. As in a real cluster, persistentvolume-binder binds claims.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_ATTACHMENTS, StorageClass
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE, Notice
from kcm_cli.planning.volumes.binding import provisioned_name
from kcm_cli.planning.volumes.classes import class_of_claim
from kcm_cli.planning.volumes.names import PROVISIONED_BY, SELECTED_NODE
from kcm_cli.sandbox.events import ref_of
from kcm_cli.sandbox.means import Means
from kcm_cli.sandbox.storage import plan
from kcm_cli.sandbox.storage.views import CSI_NODES
from kcm_cli.sandbox.storage.worker import ATTACHMENT, CLAIM, VOLUME, StorageWorker
from kcm_cli.sandbox.views import NODES

log = logging.getLogger(__name__)
NODE, INSTALL = "node:", "install:"
_BY_NODE = "node of a claim without a volume"


class StorageDriver(StorageWorker):
    """See the module. The informers must run, too."""

    def __init__(self, means: Means) -> None:
        super().__init__(means, "csi-driver")
        self._events, self._clock = means.events, means.clock
        self._since: dict[str, float] = {}
        self._nodes = means.informers.get(NODES)
        self._csi_nodes = means.informers.get(CSI_NODES)
        self._claims.store.add_index(_BY_NODE, plan.selected_node)
        self._follow(self._nodes, NODE)
        self._nodes.listen(on_delete=lambda node: self._again(self._claims.store.by_index(_BY_NODE, node.name)))
        self._classes.listen(
            on_add=lambda _: self._again(self._claims.store), on_update=lambda _, __: self._again(self._claims.store)
        )

    async def run(self) -> None:
        """Serve until cancelled."""
        await self._nodes.synced.wait()  # no node is gone before
        self._queue.add(INSTALL)
        await super().run()

    def syncs(self) -> Mapping[str, Callable[[str], Awaitable[None]]]:
        return {
            CLAIM: self._claim,
            VOLUME: self._volume,
            ATTACHMENT: self._attachment,
            NODE: self._node,
            INSTALL: self._install,
        }

    def _again(self, claims: Iterable[PersistentVolumeClaim]) -> None:
        for claim in claims:
            self._queue.add(f"{CLAIM}{claim.key}")

    async def _install(self, _: str) -> None:
        await self._make(CSI_DRIVERS, plan.driver_doc())
        await self._make(STORAGE_CLASSES, plan.class_doc())

    async def _node(self, name: str) -> None:
        node = self._nodes.store.get(name)
        if node is not None and self._csi_nodes.store.get(name) is None:
            await self._make(CSI_NODES, plan.csi_node_doc(name, node.uid))

    # -- claims

    async def _claim(self, name: str) -> None:
        claim = self._claims.store.get(name)
        if claim is None:
            self._since.pop(name, None)
            return
        class_ = self._classes.store.get(class_of_claim(claim))
        delay_s = plan.provision_delay_s(claim, class_)
        if delay_s is not None and class_ is not None:
            await self._provision(claim, class_, delay_s)
            return
        self._since.pop(name, None)
        grown = plan.growth(claim, self._volumes.store.get(claim.spec.volume_name), class_)
        if grown is not None:
            await self._grow(claim, grown)

    async def _provision(self, claim: PersistentVolumeClaim, class_: StorageClass, delay_s: float) -> None:
        """Create the volume after the delay. The binder binds it."""
        name = provisioned_name(claim)
        if self._volumes.store.get(name) is not None:
            return
        chosen = claim.annotations.get(SELECTED_NODE, "")
        node = self._nodes.store.get(chosen)
        if chosen and node is None:
            await self._give_back(claim, chosen)
            return
        now = self._clock.monotonic()
        obstacle = plan.obstacle(claim, class_)
        if claim.key not in self._since:
            self._since[claim.key] = now
            self._emit(claim, "Provisioning", f'External provisioner is provisioning volume for claim "{claim.key}"')
            if obstacle is not None:
                type_, reason, message = obstacle
                self._emit(claim, reason, message, type_)
        if obstacle is not None:
            return
        left_s = self._since[claim.key] + delay_s - now
        if left_s > 0:
            self._queue.add_after(f"{CLAIM}{claim.key}", left_s)
            return
        every = (one.labels for one in self._nodes.store)
        where = node.labels if node is not None else plan.any_place(claim, class_, every)
        doc = plan.volume_doc(claim, class_, where)
        if await self._make(PERSISTENT_VOLUMES, doc):
            self._emit(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    async def _give_back(self, claim: PersistentVolumeClaim, gone: str) -> None:
        """Let the scheduler select another node for a claim whose node is gone."""
        self._since.pop(claim.key, None)
        self._emit(claim, plan.FAILED, f'node "{gone}" not found', "Warning")
        patch: Doc = {
            "metadata": {"annotations": {SELECTED_NODE: None}, "resourceVersion": claim.metadata.resource_version}
        }
        await self._client.patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, patch, content_type=MERGE)

    async def _grow(self, claim: PersistentVolumeClaim, grown: plan.Growth) -> None:
        if not grown.volume_done:
            text = f"External resizer is resizing volume {claim.spec.volume_name}"
            self._emit(claim, "Resizing", text)
            condition: Doc = {
                "type": "Resizing",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": format_time(self._clock.now()),
            }
            going = _allocated(grown, "ControllerResizeInProgress")
            await self._claim_status(claim, {"conditions": [condition], **going})
            size: Doc = {"spec": {"capacity": {"storage": grown.size}}}
            await self._client.patch(PERSISTENT_VOLUMES, "", claim.spec.volume_name, size, content_type=MERGE)
        done: Doc = {"capacity": {"storage": grown.size}, "conditions": [{"type": "Resizing", "$patch": "delete"}]}
        done["allocatedResources"] = {"storage": grown.size}
        done["allocatedResourceStatuses"] = None
        await self._claim_status(claim, done)
        self._emit(claim, "VolumeResizeSuccessful", "Resize volume succeeded")

    async def _claim_status(self, claim: PersistentVolumeClaim, status: Doc) -> None:
        patch: Doc = {"metadata": {"uid": claim.uid}, "status": status}
        await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS,
            claim.namespace,
            claim.name,
            patch,
            content_type=STRATEGIC_MERGE,
            subresource="status",
        )

    def _emit(self, claim: PersistentVolumeClaim, reason: str, message: str, type_: str = "Normal") -> None:
        notice = Notice(ref_of("PersistentVolumeClaim", claim), type_, reason, message)
        self._events.component(plan.DRIVER, notice)

    # -- volumes and attachments

    async def _volume(self, name: str) -> None:
        volume = self._volumes.store.get(name)
        if volume is not None and volume.spec.claim_ref is not None:
            self._queue.add(f"{CLAIM}{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}")
        await self._release(name, deletes=lambda volume: volume.annotations.get(PROVISIONED_BY) == plan.DRIVER)

    async def _attachment(self, name: str) -> None:
        attachment = self._attachments.store.get(name)
        if attachment is None:
            return
        if plan.to_attach(attachment):
            if plan.ATTACHER_FINALIZER not in attachment.metadata.finalizers:
                finalizers = [*attachment.metadata.finalizers, plan.ATTACHER_FINALIZER]
                await self._set_finalizers(VOLUME_ATTACHMENTS, attachment, finalizers)
            await self._attached(attachment)
        elif plan.to_detach(attachment):
            left = plan.without(attachment.metadata.finalizers, plan.ATTACHER_FINALIZER)
            await self._set_finalizers(VOLUME_ATTACHMENTS, attachment, left)


def _allocated(grown: plan.Growth, status: str) -> Doc:
    return {"allocatedResources": {"storage": grown.size}, "allocatedResourceStatuses": {"storage": status}}
