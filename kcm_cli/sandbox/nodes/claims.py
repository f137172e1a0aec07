"""Why a pod's claims cannot be mounted: they are not bound, or their volumes are not attached.

A volume has to be attached unless the CSIDriver of its driver says otherwise. If the driver has no CSIDriver, it does
not wait, because nothing in the cluster would attach it.

upstream: pkg/kubelet/volumemanager, pkg/volume/util/operationexecutor/operation_generator.go
"""

from collections.abc import Callable, Iterator

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim, Volume
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.api.well_known import PVC_PROTECTION
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.pod_claims import claim_name, foreign, made_for
from kcm_cli.planning.volumes.attachable import is_attached_by, of_pod_volume
from kcm_cli.runtime.informers import Informers
from kcm_cli.sandbox.nodes.machine import ATTACH, MOUNT, Hold
from kcm_cli.sandbox.nodes.references import CLAIM, object_id
from kcm_cli.sandbox.nodes.shape import ANNOTATIONS
from kcm_cli.sandbox.views import NODES, SimulatedNode, SimulatedPod


class Claims:
    """Reads the informers' caches.

    changed: called with the id (``references.object_id``) of a claim that changed or whose volume changed, or with an
    empty string if a driver changed. attached: called with the name of a node whose attached volumes changed.
    """

    def __init__(self, informers: Informers, changed: Callable[[str], None], attached: Callable[[str], None]) -> None:
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._volumes = informers.get(PERSISTENT_VOLUMES)
        self._drivers = informers.get(CSI_DRIVERS)
        self._nodes = informers.get(NODES)

        def of_claim(claim: Object) -> None:
            changed(object_id(CLAIM, claim.key))

        def of_volume(volume: PersistentVolume) -> None:
            if volume.spec.claim_ref is not None:
                changed(object_id(CLAIM, f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}"))

        def of_driver(_: Object) -> None:
            changed("")

        def of_node(old: SimulatedNode, new: SimulatedNode) -> None:
            if old.status.volumes_attached != new.status.volumes_attached:
                attached(new.name)

        self._claims.listen(on_add=of_claim, on_update=lambda _, new: of_claim(new), on_delete=of_claim)
        self._volumes.listen(on_add=of_volume, on_update=lambda _, new: of_volume(new), on_delete=of_volume)
        self._drivers.listen(on_add=of_driver, on_update=lambda _, new: of_driver(new), on_delete=of_driver)
        self._nodes.listen(on_update=of_node)

    async def synced(self) -> None:
        """Wait until the caches are filled."""
        for informer in (self._claims, self._volumes, self._drivers, self._nodes):
            await informer.synced.wait()

    def unbound(self, pod: SimulatedPod) -> Hold | None:
        """Return a Hold if a claim of the pod is missing, not bound, or has no volume."""
        problems = {volume.name: problem for volume in pod.spec.volumes for problem in self._problems(pod, volume)}
        if not problems:
            return None
        names = " ".join(sorted(problems))
        volumes = f"unmounted volumes=[{names}], unattached volumes=[], failed to process volumes=[{names}]"
        text = "; ".join(problems.values())
        return Hold(MOUNT, f"Unable to attach or mount volumes: {volumes}: {text}")

    def unattached(self, pod: SimulatedPod) -> Hold | None:
        """Return a Hold if a volume of the pod is not attached to its node. A kubelet emits no Event for it: the
        attach/detach controller does. Without the annotation of a node, that leaves volumes to the kubelet."""
        node = self._nodes.store.get(pod.spec.node_name)
        if node is not None and not ANNOTATIONS.keys() <= node.annotations.keys():
            return None
        there = {volume.name for volume in node.status.volumes_attached} if node is not None else set()
        for volume in pod.spec.volumes:
            found = of_pod_volume(pod, volume, self._claims.store.get, self._volumes.store.get)
            if found is None or not found.driver or found.unique_name in there:
                continue
            driver = self._drivers.store.get(found.driver)
            if driver is not None and is_attached_by(driver):
                return Hold(ATTACH, "")
        return None

    def _problems(self, pod: SimulatedPod, volume: Volume) -> Iterator[str]:
        name = claim_name(pod, volume)
        if not name:
            return
        claim = self._claims.store.get(f"{pod.namespace}/{name}")
        problem = self._problem(claim, name)
        if problem:
            yield f"error processing PVC {pod.namespace}/{name}: {problem}"
        elif claim is not None and volume.ephemeral is not None and not made_for(claim, pod):
            yield foreign(claim, pod)

    def _problem(self, claim: PersistentVolumeClaim | None, name: str) -> str:
        """The error of a claim or its volume; empty if there is none."""
        if claim is None:
            return f'failed to fetch PVC from API server: persistentvolumeclaims "{name}" not found'
        if claim.deleting and PVC_PROTECTION not in claim.metadata.finalizers:
            return "PVC is being deleted"
        if claim.status.phase != "Bound":
            return "PVC is not bound"
        wanted = claim.spec.volume_name
        if not wanted:
            return "PVC has empty pvc.Spec.VolumeName"
        volume = self._volumes.store.get(wanted)
        if volume is None:
            return f'failed to fetch PV {wanted} from API server: persistentvolumes "{wanted}" not found'
        ref = volume.spec.claim_ref
        if ref is None:
            return (
                f"found PV object {wanted} but it has a nil pv.Spec.ClaimRef "
                "indicating it is not yet bound to the claim"
            )
        if ref.uid != claim.uid:
            return (
                f"found PV object {wanted} but its pv.Spec.ClaimRef.UID {ref.uid} does not point to "
                f"claim.UID {claim.uid}"
            )
        return ""
