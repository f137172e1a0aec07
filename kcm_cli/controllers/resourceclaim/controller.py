"""resourceclaim-controller: creates ResourceClaims from templates, and deallocates those that are not used any more.

Keys are ``pod:namespace/name``, ``podgroup:…`` and ``claim:…``. PodGroups are watched under the gate
DRAWorkloadResourceClaims. Another queue has what many pods use: these are queued without holding the loop.

upstream: pkg/controller/resourceclaim
"""

from collections.abc import Iterable, Iterator, Sequence

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, ResourceClaim, ResourceClaimTemplate
from kcm_cli.api.scheduling import POD_GROUPS, PodGroup
from kcm_cli.controllers.resourceclaim import plan
from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.controllers.resourceclaim.generate import Generator
from kcm_cli.controllers.resourceclaim.metrics import ResourceClaimMetrics
from kcm_cli.controllers.resourceclaim.plan import OWNER, Caches
from kcm_cli.controllers.resourceclaim.reservations import Reservations
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, gate, starting
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.resource_claims import (
    BY_GROUP,
    Reference,
    claim_keys,
    consumer_of,
    group_key,
    has_claims,
    member_of,
    named,
)
from kcm_cli.runtime.store import by_controller
from kcm_cli.runtime.turns import in_turns

_CLAIM, _TEMPLATE = "resource claim", "resource claim template"
POD, POD_GROUP, CLAIM = "pod", "podgroup", "claim"
GROUPS_GATE = "DRAWorkloadResourceClaims"
MANY = 100
"""Pods and groups that are looked at in one go when a claim, a template or a group changes."""


class GroupUnknown(SyncError):
    """A pod names a PodGroup that the cache does not have."""

    reason = "NotFound"


class WrongOwner(SyncError):
    """The claim that a pod's status names for a template has another owner."""


class ResourceClaimController:
    """The controller. See the module for its keys."""

    def __init__(self, context: ControllerContext) -> None:
        self._queue, self._crowds = context.queues
        self._pods = context.cache(PODS)
        self._claims = context.cache(RESOURCE_CLAIMS)
        self._pod_groups = context.cache(POD_GROUPS) if context.gates.enabled(GROUPS_GATE) else None
        groups = self._pod_groups.store if self._pod_groups is not None else None
        self._caches = Caches(self._claims.store, groups)
        self._deleted = Recent()
        self._claims.store.add_index(OWNER, by_controller)
        metrics = ResourceClaimMetrics(context.metrics, self._claims.store)
        self._generator = Generator(context, self._caches, metrics)
        self._reservations = Reservations(context.client, self._caches, self._pods.store, self._deleted)
        self._pods.store.add_index(_CLAIM, claim_keys)
        self._pods.store.add_index(_TEMPLATE, plan.template_keys)
        if self._pod_groups is not None:
            self._pods.store.add_index(BY_GROUP, member_of)
            self._pod_groups.store.add_index(_CLAIM, claim_keys)
            self._pod_groups.store.add_index(_TEMPLATE, plan.template_keys)

    async def sync(self, key: str) -> float | None:
        kind, _, name = key.partition(":")
        if kind == POD:
            await self._sync_pod(name)
        elif kind == POD_GROUP:
            await self._sync_group(name)
        else:
            claim = self._claims.store.get(name)
            if claim is not None:
                return await self._reservations.sync(claim)
        return None

    async def sync_crowd(self, key: str) -> None:
        """Queue the pods or PodGroups that ``key`` names by their kind, an index and a value."""
        kind, index, value = key.split(":", 2)
        if kind == POD:
            async for pod in in_turns(self._pods.store.by_index(index, value), OBJECTS):
                for one in self.pod_changed(pod):
                    self._queue.add(one)
            return
        async for group in in_turns(self._groups_of(index, value), OBJECTS):
            for one in self.group_changed(group):
                self._queue.add(one)

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.store.get(key)
        if pod is None or not plan.needs_work(pod, self._caches):
            return
        await self._generator.sync(pod, self._group_of(pod))
        now = self._pods.store.get(key)  # it may have ended, or been deleted, while its claims were created
        if now is None or now.uid != pod.uid or not plan.needs_work(now, self._caches):
            return
        if now.spec.node_name:  # the scheduler reserves the claims of those that it binds
            await self._reserve(now, self._group_of(now))

    def _group_of(self, pod: Pod) -> PodGroup | None:
        """The PodGroup of a pod, if it has one. Raises GroupUnknown."""
        key = group_key(pod)
        if not self._caches.groups or not key:
            return None
        group = self._caches.group(pod)
        if group is None:
            raise GroupUnknown(f'get PodGroup for Pod {pod.key}: podgroup.scheduling.k8s.io "{key}" not found')
        return group

    async def _reserve(self, pod: Pod, group: PodGroup | None) -> None:
        for entry in pod.spec.resource_claims:
            found = named(pod, entry)
            if not isinstance(found, Reference):
                continue
            claim = self._caches.claim(pod.namespace, found.name)
            if claim is None:
                if self._caches.is_unseen(pod.namespace, found.name):
                    continue  # the event of its next version queues the pod
                return
            wrong = plan.not_owned(pod, found, claim, groups=self._caches.groups)
            if wrong:
                raise WrongOwner(wrong)
            if plan.to_reserve(pod, claim, groups=self._caches.groups):
                await self._reservations.add(claim, consumer_of(pod, group, entry))

    async def _sync_group(self, key: str) -> None:
        group = self._caches.pod_groups.get(key) if self._caches.pod_groups is not None else None
        if group is not None and plan.needs_work(group, self._caches):
            await self._generator.sync(group, None)

    # -- events

    def pod_changed(self, pod: Pod) -> Iterator[str]:
        """The pod's key if it needs work, and the keys of its claims if it has ended."""
        if not has_claims(pod):
            return
        if plan.is_done(pod):
            yield from _claims(plan.claims_of(pod))
        if plan.needs_work(pod, self._caches):
            yield f"{POD}:{pod.key}"

    def pod_deleted(self, pod: Pod) -> Keys:
        """The keys of a deleted pod's claims."""
        if not has_claims(pod):
            return ()
        self._deleted.add(pod.uid)
        return _claims(plan.claims_of(pod))

    def group_changed(self, group: PodGroup) -> Iterator[str]:
        """The group's key if it needs work, and the keys of its pods."""
        if not group.spec.resource_claims:
            return
        if plan.needs_work(group, self._caches):
            yield f"{POD_GROUP}:{group.key}"
        yield from self._pods_of(BY_GROUP, group.key)

    def group_deleted(self, group: PodGroup) -> Keys:
        """The keys of a deleted group's claims."""
        if not group.spec.resource_claims:
            return ()
        self._deleted.add(group.uid)
        return _claims(claim_keys(group))

    def claim_changed(self, claim: ResourceClaim) -> Iterator[str]:
        """The claim's key, and the keys of its users."""
        yield f"{CLAIM}:{claim.key}"
        yield from self._users(_CLAIM, claim.key)

    def claim_deleted(self, claim: ResourceClaim) -> Keys:
        """The keys of the deleted claim's users."""
        return self._users(_CLAIM, claim.key)

    def template_changed(self, template: ResourceClaimTemplate) -> Keys:
        """The keys of the pods and groups that use the template."""
        return self._users(_TEMPLATE, template.key)

    def _pods_of(self, index: str, key: str) -> Iterator[str]:
        """The keys of the pods of an index, and of their claims. Many pods are left to ``sync_crowd``."""
        pods = self._pods.store.by_index(index, key)
        if len(pods) > MANY:
            self._crowds.add(f"{POD}:{index}:{key}")
            return
        for pod in pods:
            yield from self.pod_changed(pod)

    def _groups_of(self, index: str, key: str) -> Sequence[PodGroup]:
        return self._pod_groups.store.by_index(index, key) if self._pod_groups is not None else ()

    def _users(self, index: str, key: str) -> Iterator[str]:
        """The keys of the pods and groups of an index, and of the groups' pods. Many are left to ``sync_crowd``."""
        yield from self._pods_of(index, key)
        groups = self._groups_of(index, key)
        if len(groups) + sum(self._pods.store.count(BY_GROUP, group.key) for group in groups) > MANY:
            self._crowds.add(f"{POD_GROUP}:{index}:{key}")
            return
        for group in groups:
            yield from self.group_changed(group)


def _claims(keys: Iterable[str]) -> list[str]:
    return [f"{CLAIM}:{key}" for key in keys]


CONTROLLER = Controller(
    ResourceClaimController,
    (
        Queue(
            "resource_claim",
            Watch(
                RESOURCE_CLAIMS,
                changed=ResourceClaimController.claim_changed,
                deleted=ResourceClaimController.claim_deleted,
            ),
            watches=(
                Watch(PODS, changed=ResourceClaimController.pod_changed, deleted=ResourceClaimController.pod_deleted),
                Watch(RESOURCE_CLAIM_TEMPLATES, changed=ResourceClaimController.template_changed),
                Watch(
                    POD_GROUPS,
                    changed=ResourceClaimController.group_changed,
                    deleted=ResourceClaimController.group_deleted,
                    when=gate(GROUPS_GATE),
                ),
            ),
            sync=ResourceClaimController.sync,
            failures=Failures(retried="Work item failed", key="item"),
            workers=ResourceClaimConfig,
            writes=(PODS, RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, POD_GROUPS),
        ),
        Queue("many_users_of_resource_claims", sync=ResourceClaimController.sync_crowd, measured=False),
    ),
    announces=starting("resource claim controller"),
)
