"""The scheduler's writes: bindings, conditions, evictions, and bindings of volumes."""

import msgspec

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import MERGE, STRATEGIC_MERGE, edited
from kcm_cli.planning.volumes.binding import volume_pointer
from kcm_cli.planning.volumes.names import BIND_COMPLETED, SELECTED_NODE
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.sandbox.scheduler.decide import Placement
from kcm_cli.sandbox.scheduler.listers import Listers
from kcm_cli.sandbox.scheduler.preempt import BY_SCHEDULER
from kcm_cli.sandbox.scheduler.volumes import reaches
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
        await self._client.create(
            POD_METADATA, pod.namespace, binding, name=pod.name, subresource="binding", reason=f"to node {node}"
        )

    async def failed(self, pod: SimulatedPod, reason: str, message: str, nominated: str | None) -> None:
        """Write why a pod is unschedulable, and its nominated node (None: unchanged). Unchanged values are not
        written."""
        status: Doc = {}
        if nominated is not None and nominated != pod.status.nominated_node_name:
            status["nominatedNodeName"] = nominated or None
        condition = self._condition(pod, "PodScheduled", "False", reason, message)
        if condition is not None:
            status |= _last(pod, condition)
        if status:
            await self._patch_status(pod, status)

    async def nominate(self, pod: SimulatedPod, node: str) -> None:
        """Write the nominated node of a pod that is not bound yet."""
        await self._patch_status(pod, {"nominatedNodeName": node})

    async def clear_nomination(self, pod: SimulatedPod) -> None:
        """Clear the nominated node of a pod."""
        await self._patch_status(pod, {"nominatedNodeName": None})

    async def evict(self, pod: SimulatedPod, preemptor: str) -> bool:
        """Add the condition DisruptionTarget to a pod and delete it. False if it is deleted, or being deleted.

        preemptor: the key of the pod that gets its place.
        """
        if pod.deleting:
            return False
        message = "default-scheduler: preempting to accommodate a higher priority pod"
        condition = self._condition(pod, "DisruptionTarget", "True", BY_SCHEDULER, message)
        try:
            reason = f"preempted by {preemptor}"
            if condition is not None:
                await self._patch_status(pod, _last(pod, condition), reason)
            await self._client.delete(PODS, pod.namespace, pod.name, uid=pod.uid, reason=reason)
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

    async def _patch_status(self, pod: SimulatedPod, status: Doc, reason: str = "status changed") -> None:
        body: Doc = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._client.patch(
                POD_METADATA,
                pod.namespace,
                pod.name,
                body,
                content_type=STRATEGIC_MERGE,
                subresource="status",
                reason=reason,
            )
        except (NotFound, Conflict):
            return

    # -- volumes

    async def bind_volumes(self, pod: SimulatedPod, placement: Placement, listers: Listers) -> str:
        """Bind the volumes for a pod on its node, and wait until that is done. Returns the error as text; empty on
        success."""
        needs = placement.needs
        asked = _Asked(
            [(await self._give(volume, claim), claim) for volume, claim in needs.bindings],
            [await self._select(claim, placement.node) for claim in needs.provisions],
            placement.node,
        )
        deadline = self._clock.monotonic() + BIND_TIMEOUT_S
        while self._clock.monotonic() < deadline:
            await self._clock.sleep(POLL_S)
            current = listers.pods.store.get(pod.key)
            if current is None or current.uid != pod.uid or current.deleting:
                return "pod does not exist any more"
            problem = asked.problem(listers)
            if problem is not None:
                return problem
        return "binding volumes: context deadline exceeded"

    async def _give(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
        doc = edited(volume, volume_pointer(volume, claim))
        return await self._client.update(PERSISTENT_VOLUMES, "", volume.name, doc)

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
        patch: Doc = {"metadata": {"uid": claim.uid, "annotations": {SELECTED_NODE: node}}}
        return await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, patch, content_type=MERGE
        )


class _Asked(msgspec.Struct, frozen=True):
    """The API server's answers to the writes for a pod's volumes."""

    given: list[tuple[PersistentVolume, PersistentVolumeClaim]]
    selected: list[PersistentVolumeClaim]
    node: str

    def problem(self, listers: Listers) -> str | None:
        """Why binding has failed; empty if all volumes are bound; None if that is still pending."""
        found = [self._of_given(volume, claim, listers) for volume, claim in self.given]
        found += [self._of_selected(claim, listers) for claim in self.selected]
        failed = next((problem for problem in found if problem), None)
        return failed or (None if None in found else "")

    def _of_given(self, volume: PersistentVolume, claim: PersistentVolumeClaim, listers: Listers) -> str | None:
        now = listers.volumes.store.get(volume.name)
        if now is not None and now.version < volume.version:
            return None  # the cache is older than what was written
        if now is None or now.spec.claim_ref is None or not now.spec.claim_ref.uid:
            return f'ClaimRef got reset for pv "{volume.name}"'
        return self._misplaced(now, listers) or _bound(listers.claims.store.get(claim.key))

    def _of_selected(self, claim: PersistentVolumeClaim, listers: Listers) -> str | None:
        now = listers.claims.store.get(claim.key)
        if now is not None and now.version < claim.version:
            return None
        if now is None or now.annotations.get(SELECTED_NODE) != self.node:
            return f'provisioning failed for PVC "{claim.name}"'
        volume = listers.volumes.store.get(now.spec.volume_name)
        return self._misplaced(volume, listers) or _bound(now)

    def _misplaced(self, volume: PersistentVolume | None, listers: Listers) -> str:
        """The error if a volume is not accessible from the node; empty otherwise, or if that is unknown."""
        node = listers.nodes.store.get(self.node)
        if node is None or volume is None or reaches(volume, node):
            return ""
        place = f'pv "{volume.name}" node affinity doesn\'t match node "{node.name}"'
        return f"{place}: no matching NodeSelectorTerms"


def _last(pod: SimulatedPod, condition: Doc) -> Doc:
    """A patch that updates a condition in place, or appends it."""
    order = dict.fromkeys([*(known.type for known in pod.status.conditions), condition["type"]])
    return {"$setElementOrder/conditions": [{"type": type_} for type_ in order], "conditions": [condition]}


def _bound(claim: PersistentVolumeClaim | None) -> str | None:
    done = claim is not None and claim.spec.volume_name and BIND_COMPLETED in claim.annotations
    return "" if done else None
