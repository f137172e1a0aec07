"""Provisions volumes for claims: requests them from external provisioners, or creates hostPath volumes.

upstream: pkg/controller/volume/persistentvolume/pv_controller.go#provisionClaim, provisionClaimOperation,
provisionClaimOperationExternal; pkg/volume/hostpath/host_path.go#Provision
"""

import logging
from collections.abc import Sequence
from functools import partial

from kcm_cli.api.core import NODES, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, StorageClass
from kcm_cli.component.environment import Host
from kcm_cli.component.logs import V2
from kcm_cli.component.volume_config import VolumeConfig
from kcm_cli.controllers.persistentvolume_binder import plugins
from kcm_cli.controllers.persistentvolume_binder.caches import Caches
from kcm_cli.controllers.persistentvolume_binder.metrics import PROVISION, OperationMetrics
from kcm_cli.controllers.persistentvolume_binder.operations import Operations
from kcm_cli.controllers.persistentvolume_binder.plan import NORMAL, WARNING, Event
from kcm_cli.controllers.persistentvolume_binder.plugins import HostPaths
from kcm_cli.controllers.persistentvolume_binder.writes import Writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.volumes import binding
from kcm_cli.planning.volumes.classes import class_of_claim
from kcm_cli.planning.volumes.migration import provisioner_of
from kcm_cli.planning.volumes.names import (
    BOUND_BY_CONTROLLER,
    IN_TREE_FINALIZER,
    PROVISIONED_BY,
    SELECTED_NODE,
    YES,
)
from kcm_cli.rest.errors import AlreadyExists
from kcm_cli.rest.transport import RequestError

log = logging.getLogger(__name__)

FAILED = "ProvisioningFailed"
_MOUNT_OPTIONS = "Mount options are not supported by the provisioner but claim's StorageClass has mount options"
CREATE_ATTEMPTS = 5
CREATE_PAUSE_S = 10.0


class ProvisioningError(SyncError):
    """Provisioning failed; an Event on the claim says why."""


class Provisioner:
    """Provisions volumes for claims."""

    def __init__(self, context: ControllerContext, caches: Caches, writes: Writes, metrics: OperationMetrics) -> None:
        self._client = context.client
        self._clock = context.clock
        self._config = context.config(VolumeConfig)
        self._caches = caches
        self._writes = writes
        self._metrics = metrics
        self._paths = HostPaths(context.rng, simulated=context.config(Host).simulated_nodes)
        self._nodes = context.cache(NODES)
        self._claims, _ = context.queues
        self.operations = Operations(context.clock, context.name)

    def provision(self, claim: PersistentVolumeClaim) -> None:
        """Start to provision, if dynamic provisioning is enabled. Errors become Events on the claim."""
        if not self._config.enable_dynamic_provisioning:
            return
        class_ = self._caches.class_of(claim)
        if class_ is None:
            self._emit(claim, f'storageclass.storage.k8s.io "{class_of_claim(claim)}" not found')
            return
        try:
            plugin = plugins.provisions(class_.provisioner)
        except plugins.NoPlugin as error:
            self._emit(claim, str(error))
            return
        again = partial(self._claims.add_after, claim.key, retry=False)
        self.operations.start(operation_of(claim), partial(self._counted, claim, class_, plugin), again)

    async def _counted(self, claim: PersistentVolumeClaim, class_: StorageClass, plugin: str) -> None:
        self._metrics.started(claim.key, plugin or provisioner_of(class_.provisioner), PROVISION)
        try:
            await (self._provision_here(claim, class_, plugin) if plugin else self._request(claim, class_))
        except (ProvisioningError, RequestError):
            self._metrics.failed(claim.key)
            raise

    async def _request(self, claim: PersistentVolumeClaim, class_: StorageClass) -> None:
        """Request the volume from the external provisioner, with an annotation on the claim."""
        name = provisioner_of(class_.provisioner)
        try:
            changes = binding.claim_provisioner(claim, name)
            claim = await self._writes.claim(claim, changes, reason=f"{name} shall provision a volume")
        except RequestError as error:
            fields = {"PVC": kobj(claim), "err": str(error)}
            log.log(V2, "Error saving claim", extra={"fields": fields})
            self._emit(claim, f"Error saving claim: {error}")
            raise
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{name}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._writes.emit_on_claim(claim, Event(NORMAL, "ExternalProvisioning", message))

    # -- hostPath

    async def _provision_here(self, claim: PersistentVolumeClaim, class_: StorageClass, plugin: str) -> None:
        """Provision the volume in this process. Raises ProvisioningError."""
        if claim.spec.data_source is not None:
            only = "Only CSI plugin can provision a claim with a datasource"
            raise self._refused(claim, f'plugin "{plugin}" is not a CSI plugin. {only}')
        changes = binding.claim_provisioner(claim, class_.provisioner)
        claim = await self._writes.claim(claim, changes, reason="a volume is provisioned")
        if await self._client.find(PERSISTENT_VOLUMES, "", binding.provisioned_name(claim)) is not None:
            return
        self._check(claim, class_, plugin)
        path = self._paths.new()
        await self._make_directory(claim, class_, plugin, path)
        await self._save(claim, volume_doc(claim, class_, plugin, path), plugin, path)

    def _check(self, claim: PersistentVolumeClaim, class_: StorageClass, plugin: str) -> None:
        if class_.mount_options:
            options = f"[{' '.join(class_.mount_options)}]"
            has = f'StorageClass "{class_.name}" has mount options {options}'
            fields = {"PVC": kobj(claim), "storageClassName": class_.name, "options": list(class_.mount_options)}
            log.log(V2, _MOUNT_OPTIONS, extra={"fields": fields})
            raise self._refused(claim, f"Mount options are not supported by the provisioner but {has}")
        if not self._config.enable_host_path_provisioning:
            why = f'provisioning in volume plugin "{plugin}" is disabled'
            fields = {"PVC": kobj(claim), "storageClassName": class_.name, "err": why}
            log.log(V2, "Failed to create provisioner for claim with StorageClass", extra={"fields": fields})
            raise self._refused(claim, f"Failed to create provisioner: {why}")
        node = claim.annotations.get(SELECTED_NODE)
        if node is not None and self._nodes.store.get(node) is None:
            raise self._refused(claim, f'Failed to get target node: node "{node}" not found')

    async def _make_directory(self, claim: PersistentVolumeClaim, class_: StorageClass, plugin: str, path: str) -> None:
        try:
            with self._metrics.attempt(plugin, PROVISION):
                if claim.spec.volume_mode == "Block":
                    raise OSError(f"{plugin} does not support block volume provisioning")
                await self._paths.make(path)
        except OSError as error:
            fields = {"PVC": kobj(claim), "storageClassName": class_.name, "err": str(error)}
            log.log(V2, "Failed to provision volume for claim with StorageClass", extra={"fields": fields})
            refused = self._refused(claim, f'Failed to provision volume with StorageClass "{class_.name}": {error}')
            # the scheduler may choose another node
            await self._writes.claim(claim, binding.without_node(claim), reason="no volume on the selected node")
            raise refused from error

    async def _save(self, claim: PersistentVolumeClaim, volume: Doc, plugin: str, path: str) -> None:
        """Create the PersistentVolume of a provisioned volume. If that fails, the volume is deleted again."""
        for attempt in range(CREATE_ATTEMPTS):
            try:
                await self._client.create(PERSISTENT_VOLUMES, "", volume, reason=f"provisioned for claim {claim.key}")
                break
            except AlreadyExists:
                break
            except RequestError as error:
                last = attempt == CREATE_ATTEMPTS - 1
                if last:
                    await self._take_back(claim, path, error)
                    return
                await self._clock.sleep(CREATE_PAUSE_S)
        fields = {"PVC": kobj(claim), "volumeName": binding.provisioned_name(claim)}
        log.log(V2, "Volume provisioned for claim", extra={"fields": fields})
        text = f"Successfully provisioned volume {binding.provisioned_name(claim)} using {plugin}"
        self._writes.emit_on_claim(claim, Event(NORMAL, "ProvisioningSucceeded", text))

    async def _take_back(self, claim: PersistentVolumeClaim, path: str, error: Exception) -> None:
        text = f"Error creating provisioned PV object for claim {claim.key}: {error}. Deleting the volume."
        self._emit(claim, text)
        try:
            await self._paths.delete(path)
        except OSError as problem:
            left = f"Error cleaning provisioned volume for claim {claim.key}: {problem}. Please delete manually."
            self._writes.emit_on_claim(claim, Event(WARNING, "ProvisioningCleanupFailed", left))

    def _refused(self, claim: PersistentVolumeClaim, message: str) -> ProvisioningError:
        self._emit(claim, message)
        return ProvisioningError(message)

    def _emit(self, claim: PersistentVolumeClaim, message: str) -> None:
        self._writes.emit_on_claim(claim, Event(WARNING, FAILED, message))


def operation_of(claim: PersistentVolumeClaim) -> str:
    return f"provision-{claim.key}[{claim.uid}]"


def volume_doc(claim: PersistentVolumeClaim, class_: StorageClass, plugin: str, path: str) -> Doc:
    """The body of a hostPath PersistentVolume that is bound to a claim."""
    policy = class_.reclaim_policy or "Delete"
    modes: Sequence[str] = claim.spec.access_modes or ("ReadWriteOnce",)
    resources = claim.spec.resources
    size = ((resources.requests if resources is not None else None) or {}).get("storage", "0")
    annotations = {
        "kubernetes.io/createdby": "hostpath-dynamic-provisioner",
        BOUND_BY_CONTROLLER: YES,
        PROVISIONED_BY: plugin,
    }
    metadata: Doc = {"name": binding.provisioned_name(claim), "annotations": annotations}
    if policy == "Delete":
        metadata["finalizers"] = [IN_TREE_FINALIZER]
    spec: Doc = {
        "persistentVolumeReclaimPolicy": policy,
        "accessModes": list(modes),
        "capacity": {"storage": size},
        "hostPath": {"path": path},
        "claimRef": binding.claim_ref(claim),
        "storageClassName": class_.name,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
