"""persistentvolumeclaim-protection-controller: keeps a deleted claim, by a finalizer, while a pod uses it.

upstream: pkg/controller/volume/pvcprotection
"""

import logging
from collections.abc import Callable

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from kcm_cli.api.well_known import PVC_PROTECTION
from kcm_cli.component.logs import V2
from kcm_cli.controllers.persistentvolumeclaim_protection import plan
from kcm_cli.controllers.shared.live import LiveUsers
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.pod_claims import CLAIM, claims_of
from kcm_cli.planning.protection import is_held, needs_work

log = logging.getLogger(__name__)

Uses = Callable[[Pod, PersistentVolumeClaim], bool]
AGAIN_S = 60.0
"""When to look again at a claim that is used by a pod which the cache does not show, and perhaps never will: it may be
gone before the cache is filled anew, without any event."""


class ClaimProtectionController:
    """Keys are claims."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._notes_use = context.gates.enabled("PersistentVolumeClaimUnusedSinceTime")
        (self._queue,) = context.queues
        self._claims = context.cache(PERSISTENT_VOLUME_CLAIMS)
        self._pods = context.cache(PODS)
        self._users = LiveUsers(self._client, PODS, claims_of)
        self._pods.store.add_index(CLAIM, claims_of)

    async def sync(self, key: str) -> float | None:
        try:
            return await self._sync(key)
        finally:
            if not len(self._queue):
                self._users.clear()  # no other claim needs the lists

    async def _sync(self, key: str) -> float | None:
        claim = self._claims.store.get(key)
        if claim is None:
            return None
        if self._says_use(claim) and await self._note_use(claim):
            return None  # its update queues the claim again
        held = is_held(claim, PVC_PROTECTION)
        used = not held or await self._is_used(claim, plan.uses)
        if used and held:
            log.log(V2, "Keeping PVC because it is being used", extra={"fields": {"PVC": kobj(claim)}})
        update = plan.plan(claim, used=used)
        if update is not None:
            await writes.send(self._client, update)
        return AGAIN_S if self._has_unseen_user(claim, kept=used and held) else None

    def _says_use(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim gets the condition. Not before it is bound: the binder would meet a conflict."""
        return self._notes_use and claim.status.phase == "Bound" and not claim.deleting

    async def _note_use(self, claim: PersistentVolumeClaim) -> bool:
        """Write the condition that says whether pods refer to a claim. Returns whether it changed."""
        said = plan.says_unused(claim)
        if said is True and not self._cache_says(claim, plan.refers):
            return False
        unused = not await self._is_used(claim, plan.refers)
        if unused is said:
            return False
        await writes.send(self._client, plan.status(claim, self._clock.now(), unused=unused))
        return True

    async def _is_used(self, claim: PersistentVolumeClaim, uses: Uses) -> bool:
        """Whether a pod uses the claim, by the cache or, since that may be stale, by a list from the API server."""
        if self._cache_says(claim, uses):
            return True
        user = await self._users.find(claim.key, claim, claim.namespace, lambda pod: uses(pod, claim))
        if user is None:
            log.log(V2, "PVC is unused", extra={"fields": {"PVC": kobj(claim)}})
        else:
            log.log(V2, "Pod uses PVC", extra={"fields": {"pod": kobj(user), "PVC": kobj(claim)}})
        return user is not None

    def _has_unseen_user(self, claim: PersistentVolumeClaim, *, kept: bool) -> bool:
        """Whether a claim is kept for a pod, or said to be used by one, that the cache does not show."""
        if kept:
            return not self._cache_says(claim, plan.uses)
        said = self._says_use(claim) and plan.says_unused(claim) is False
        return said and not self._cache_says(claim, plan.refers)

    def _cache_says(self, claim: PersistentVolumeClaim, uses: Uses) -> bool:
        return any(uses(pod, claim) for pod in self._pods.store.by_index(CLAIM, claim.key))

    # -- events

    def needing_work(self, claim: PersistentVolumeClaim) -> Keys:
        """The claim's key, if there may be something to write."""
        unsaid = self._says_use(claim) and plan.says_unused(claim) is None
        return (claim.key,) if unsaid or needs_work(claim, PVC_PROTECTION) else ()

    def freed_by(self, pod: Pod) -> Keys:
        """The keys of a pod's claims, if the pod may have stopped using them."""
        return claims_of(pod) if self._notes_use or plan.may_free(pod) else ()

    def freed_between(self, old: Pod, new: Pod) -> Keys:
        """The keys of ``freed_by``, and of the claims of an earlier pod of that name."""
        return (*self.freed_by(new), *(claims_of(old) if old.uid != new.uid else ()))

    def claims_of(self, pod: Pod) -> Keys:
        """The keys of a deleted pod's claims."""
        return claims_of(pod)


CONTROLLER = Controller(
    ClaimProtectionController,
    Queue(
        "pvcprotection",
        Watch(PERSISTENT_VOLUME_CLAIMS, changed=ClaimProtectionController.needing_work),
        watches=(
            Watch(
                PODS,
                added=ClaimProtectionController.freed_by,
                updated=ClaimProtectionController.freed_between,
                deleted=ClaimProtectionController.claims_of,
            ),
        ),
        sync=ClaimProtectionController.sync,
        failures=unhandled("PVC {key} failed with: {error}"),
    ),
    announces=starting("PVC protection controller"),
)
