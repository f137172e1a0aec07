"""What the scheduler writes: bindings, conditions, evictions, and what volumes need beforehand."""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.client import MERGE, STRATEGIC_MERGE, Client
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.sandbox.scheduler.decide import Placement
from kcm_cli.sandbox.scheduler.listers import Listers
from kcm_cli.sandbox.scheduler.preempt import BY_SCHEDULER
from kcm_cli.sandbox.scheduler.volumes import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from kcm_cli.sandbox.views import POD_METADATA, PODS, SimulatedPod

BIND_TIMEOUT_S = 600.0
POLL_S = 0.25


class Writes:
    """One client's writes. All methods raise ApiError and TransportError."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def bind(self, pod: SimulatedPod, node: str) -> None:
        binding: Doc = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        await self._client.create(POD_METADATA, pod.namespace, binding, name=pod.name, subresource="binding")

    async def failed(self, pod: SimulatedPod, reason: str, message: str, nominated: str | None) -> None:
        """Say why a pod waits, and for which node (None: as it is); nothing is written that is said already."""
        status: Doc = {}
        if nominated is not None and nominated != pod.status.nominated_node_name:
            status["nominatedNodeName"] = nominated or None
        condition = self._condition(pod, "PodScheduled", "False", reason, message)
        if condition is not None:
            status |= _last(pod, condition)
        if status:
            await self._patch_status(pod, status)

    async def clear_nomination(self, pod: SimulatedPod) -> None:
        """A pod has lost the node that it was promised."""
        await self._patch_status(pod, {"nominatedNodeName": None})

    async def evict(self, pod: SimulatedPod) -> bool:
        """Mark a pod as disrupted and delete it; false for one that is gone or going already."""
        if pod.deleting:
            return False
        message = "default-scheduler: preempting to accommodate a higher priority pod"
        condition = self._condition(pod, "DisruptionTarget", "True", BY_SCHEDULER, message)
        try:
            if condition is not None:
                await self._patch_status(pod, _last(pod, condition))
            await self._client.delete(PODS, pod.namespace, pod.name, uid=pod.uid)
        except (NotFound, Conflict):
            return False
        return True

    def _condition(self, pod: SimulatedPod, type_: str, status: str, reason: str, message: str) -> Doc | None:
        time: str | None = format_time(self._clock.now())
        for known in pod.status.conditions:
            if known.type != type_:
                continue
            if (known.status, known.reason, known.message) == (status, reason, message):
                return None
            if known.status == status:
                time = known.last_transition_time
        return {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
            "lastTransitionTime": time,
        }

    async def _patch_status(self, pod: SimulatedPod, status: Doc) -> None:
        body: Doc = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._client.patch(
                POD_METADATA, pod.namespace, pod.name, body, content_type=STRATEGIC_MERGE, subresource="status"
            )
        except (NotFound, Conflict):
            return

    # -- volumes

    async def bind_volumes(self, pod: SimulatedPod, placement: Placement, listers: Listers) -> str:
        """Have the volumes bound that a pod needs on its node, and wait for it; why it failed, if it did."""
        needs = placement.needs
        for volume, claim in needs.bindings:
            await self._give(volume, claim)
        for claim in needs.provisions:
            await self._select(claim, placement.node)
        waiting = {claim.key for _, claim in needs.bindings} | {claim.key for claim in needs.provisions}
        deadline = self._clock.monotonic() + BIND_TIMEOUT_S
        while self._clock.monotonic() < deadline:
            await self._clock.sleep(POLL_S)
            current = listers.pods.store.get(pod.key)
            if current is None or current.uid != pod.uid or current.deleting:
                return "pod does not exist any more"
            claims = [listers.claims.store.get(key) for key in waiting]
            if all(claim is not None and _bound(claim) for claim in claims):
                return ""
            for claim in needs.provisions:
                now = listers.claims.store.get(claim.key)
                if now is None or (not now.spec.volume_name and not self._still_selected(now, claim)):
                    return f'provisioning failed for PVC "{claim.name}"'
        return "binding volumes: context deadline exceeded"

    def _still_selected(self, now: PersistentVolumeClaim, before: PersistentVolumeClaim) -> bool:
        """Whether the driver has not taken the node back (the cache may be older than our write)."""
        return SELECTED_NODE in now.annotations or now.metadata.resource_version == before.metadata.resource_version

    async def _give(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        ref: Doc = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": claim.namespace,
            "name": claim.name,
            "uid": claim.uid,
            "resourceVersion": claim.metadata.resource_version,
        }
        metadata: Doc = {
            "resourceVersion": volume.metadata.resource_version,
            "annotations": {BOUND_BY_CONTROLLER: "yes"},
        }
        patch: Doc = {"metadata": metadata, "spec": {"claimRef": ref}}
        await self._client.patch(PERSISTENT_VOLUMES, "", volume.name, patch, content_type=MERGE)

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> None:
        patch: Doc = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: node}}}
        await self._client.patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, patch, content_type=MERGE)


def _last(pod: SimulatedPod, condition: Doc) -> Doc:
    """A patch that changes a condition in its place, or adds it after the others."""
    order = dict.fromkeys([*(known.type for known in pod.status.conditions), condition["type"]])
    return {"$setElementOrder/conditions": [{"type": type_} for type_ in order], "conditions": [condition]}


def _bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations
