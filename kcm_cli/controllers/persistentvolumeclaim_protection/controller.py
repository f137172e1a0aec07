"""persistentvolumeclaim-protection-controller: a claim that a pod uses is not gone before the pod is.

upstream: pkg/controller/volume/pvcprotection
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from kcm_cli.controllers.persistentvolumeclaim_protection import plan
from kcm_cli.controllers.persistentvolumeclaim_protection.plan import FINALIZER
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.machinery.meta import number_of
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.planning.protection import is_held, lacks, protection, release
from kcm_cli.rest.listing import Listed, list_all

_NOTHING: tuple[str, Listed[Pod]] = ("", Listed([], ""))


def build(context: ControllerContext) -> Runnable:
    controller = ClaimProtectionController(context)
    return context.worker(controller.queue, controller.sync, count=1, waits_for=controller.informers)


class ClaimProtectionController:
    """Keys are claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.queue = context.queue("pvcprotection")
        self._claims = context.informers.get(PERSISTENT_VOLUME_CLAIMS)
        self._pods = context.informers.get(PODS)
        self.informers = (self._claims, self._pods)
        self._listed: tuple[str, Listed[Pod]] = _NOTHING
        self._pods.store.add_index(CLAIM, claims_of)
        self._claims.listen(on_add=self._claim, on_update=lambda old, new: self._claim(new))
        self._pods.listen(on_add=self._pod, on_update=self._pod_updated, on_delete=self._free)

    async def sync(self, key: str) -> None:
        claim = self._claims.store.get(key)
        if claim is None:
            return
        if is_held(claim, FINALIZER) and not await self._is_used(claim):
            await writes.update(self._client, release(PERSISTENT_VOLUME_CLAIMS, claim, FINALIZER))
        elif lacks(claim, FINALIZER):
            await writes.update(self._client, protection(PERSISTENT_VOLUME_CLAIMS, claim, FINALIZER))
        if not len(self.queue):
            self._listed = _NOTHING  # it is not kept longer than it is of use

    async def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        """By a pod of the cache or, as that may lag behind, by one that the server knows."""
        if any(plan.uses(pod, claim) for pod in self._pods.store.by_index(CLAIM, claim.key)):
            return True
        if self._known_free(claim):
            return False
        live = await list_all(self._client, PODS, claim.namespace)
        self._listed = claim.namespace, live
        return any(plan.uses(pod, claim) for pod in live.items)

    def _known_free(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the last list was made since the claim began to go, and none of its pods uses it.

        Of many claims that go together, each would ask for the same list.
        """
        namespace, live = self._listed
        current = namespace == claim.namespace and number_of(live.resource_version) >= claim.version
        return current and not any(plan.uses(pod, claim) for pod in live.items)

    # -- events

    def _claim(self, claim: PersistentVolumeClaim) -> None:
        if is_held(claim, FINALIZER) or lacks(claim, FINALIZER):
            self.queue.add(claim.key)

    def _pod(self, pod: Pod) -> None:
        if plan.may_free(pod):
            self._free(pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        self._pod(new)
        if old.uid != new.uid:
            self._free(old)

    def _free(self, pod: Pod) -> None:
        for key in claims_of(pod):
            self.queue.add(key)
