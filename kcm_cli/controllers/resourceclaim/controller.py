"""resourceclaim-controller: makes claims of devices from templates, and frees those that are no longer used.

Keys are ``pod:namespace/name``, ``podgroup:…`` and ``claim:…``. PodGroups are followed under the gate
DRAWorkloadResourceClaims.

upstream: pkg/controller/resourceclaim
"""

from collections.abc import Iterable

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, ResourceClaim, ResourceClaimTemplate
from kcm_cli.api.scheduling import POD_GROUPS, PodGroup
from kcm_cli.controllers.resourceclaim import plan
from kcm_cli.controllers.resourceclaim.config import ResourceClaimConfig
from kcm_cli.controllers.resourceclaim.generate import Generator
from kcm_cli.controllers.resourceclaim.metrics import ResourceClaimMetrics
from kcm_cli.controllers.resourceclaim.reservations import Reservations
from kcm_cli.controllers.resourceclaim.snapshot import Snapshot
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.resource_claims import BY_GROUP, Reference, claim_keys, consumer_of, group_key, member_of, named
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.runtime.store import CONTROLLER_UID, by_controller

_CLAIM, _TEMPLATE = "resource claim", "resource claim template"
POD, POD_GROUP, CLAIM = "pod", "podgroup", "claim"


def build(context: ControllerContext) -> Runnable:
    controller = ResourceClaimController(context)
    count = context.config(ResourceClaimConfig).concurrent_syncs
    return context.worker(
        controller.queue, controller.sync, count=count, waits_for=controller.informers, own=controller.own
    )


class GroupUnknown(Exception):
    """A pod names a PodGroup that the cache does not show (yet)."""

    reason = "NotFound"


class WrongOwner(Exception):
    """The claim that is recorded for a pod's template belongs to somebody else."""

    reason = "WrongOwner"


class ResourceClaimController:
    """See the module."""

    def __init__(self, context: ControllerContext) -> None:
        self.queue = context.queue("resource_claim")
        self._pods = context.informers.get(PODS)
        self._claims = context.informers.get(RESOURCE_CLAIMS)
        templates = context.informers.get(RESOURCE_CLAIM_TEMPLATES)
        follows_groups = context.gates.enabled("DRAWorkloadResourceClaims")
        self._pod_groups = context.informers.get(POD_GROUPS) if follows_groups else None
        groups = self._pod_groups.store if self._pod_groups is not None else None
        self._seen = Snapshot(self._claims.store, groups)
        self._gone = Recent()
        self._claims.store.add_index(CONTROLLER_UID, by_controller)
        metrics = ResourceClaimMetrics(context.metrics, self._claims.store)
        self._generator = Generator(context, self._seen, metrics)
        self._reservations = Reservations(context.client, self._seen, self._pods.store, self._gone)
        self.informers: tuple[AnyInformer, ...] = (self._pods, self._claims, templates)
        self._listen_to_pods()
        self._claims.listen(on_add=self._claim, on_update=lambda old, new: self._claim(new), on_delete=self._claim_gone)
        templates.listen(on_add=self._template, on_update=lambda old, new: self._template(new))
        if self._pod_groups is not None:
            self.informers += (self._pod_groups,)
            self._listen_to_groups()
        self.own = context.own_writes(*self.informers)

    async def sync(self, key: str) -> None:
        kind, _, name = key.partition(":")
        if kind == POD:
            await self._sync_pod(name)
        elif kind == POD_GROUP:
            await self._sync_group(name)
        else:
            claim = self._claims.store.get(name)
            if claim is not None:
                await self._reservations.sync(claim)

    async def _sync_pod(self, key: str) -> None:
        pod = self._pods.store.get(key)
        if pod is None or not plan.needs_work(pod, self._seen):
            return
        group = self._group_of(pod)
        await self._generator.sync(pod, group)
        if pod.spec.node_name:  # the scheduler reserves the claims of those that it binds
            await self._reserve(pod, group)

    def _group_of(self, pod: Pod) -> PodGroup | None:
        """Raises GroupUnknown."""
        key = group_key(pod)
        if not self._seen.groups or not key:
            return None
        group = self._seen.group(pod)
        if group is None:
            raise GroupUnknown(f'get PodGroup for Pod {pod.key}: podgroup.scheduling.k8s.io "{key}" not found')
        return group

    async def _reserve(self, pod: Pod, group: PodGroup | None) -> None:
        for entry in pod.spec.resource_claims:
            found = named(pod, entry)
            if not isinstance(found, Reference):
                continue
            claim = self._seen.claim(pod.namespace, found.name)
            if claim is None:
                return
            wrong = plan.not_owned(pod, found, claim, groups=self._seen.groups)
            if wrong:
                raise WrongOwner(wrong)
            if plan.to_reserve(pod, claim, groups=self._seen.groups):
                await self._reservations.add(claim, consumer_of(pod, group, entry))

    async def _sync_group(self, key: str) -> None:
        group = self._seen.pod_groups.get(key) if self._seen.pod_groups is not None else None
        if group is not None and plan.needs_work(group, self._seen):
            await self._generator.sync(group, None)

    # -- events

    def _listen_to_pods(self) -> None:
        store = self._pods.store
        store.add_index(_CLAIM, claim_keys)
        store.add_index(_TEMPLATE, plan.template_keys)
        self._pods.listen(on_add=self._pod, on_update=lambda old, new: self._pod(new), on_delete=self._pod_gone)

    def _listen_to_groups(self) -> None:
        if self._pod_groups is None:
            return
        self._pods.store.add_index(BY_GROUP, member_of)
        self._pod_groups.store.add_index(_CLAIM, claim_keys)
        self._pod_groups.store.add_index(_TEMPLATE, plan.template_keys)
        self._pod_groups.listen(
            on_add=self._group, on_update=lambda old, new: self._group(new), on_delete=self._group_gone
        )

    def _pod(self, pod: Pod) -> None:
        if not plan.has_claims(pod):
            return
        if plan.is_done(pod):
            self._release(plan.claims_of(pod))
        if plan.needs_work(pod, self._seen):
            self.queue.add(f"{POD}:{pod.key}")

    def _pod_gone(self, pod: Pod) -> None:
        if plan.has_claims(pod):
            self._gone.add(pod.uid)
            self._release(plan.claims_of(pod))

    def _group(self, group: PodGroup) -> None:
        if not group.spec.resource_claims:
            return
        if plan.needs_work(group, self._seen):
            self.queue.add(f"{POD_GROUP}:{group.key}")
        for pod in self._pods.store.by_index(BY_GROUP, group.key):
            self._pod(pod)

    def _group_gone(self, group: PodGroup) -> None:
        if group.spec.resource_claims:
            self._gone.add(group.uid)
            self._release(claim_keys(group))

    def _release(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.queue.add(f"{CLAIM}:{key}")

    def _claim(self, claim: ResourceClaim) -> None:
        self.queue.add(f"{CLAIM}:{claim.key}")
        self._claim_gone(claim)

    def _claim_gone(self, claim: ResourceClaim) -> None:
        """Whoever uses it may have something to do."""
        self._users(_CLAIM, claim.key)

    def _template(self, template: ResourceClaimTemplate) -> None:
        self._users(_TEMPLATE, template.key)

    def _users(self, index: str, key: str) -> None:
        for pod in self._pods.store.by_index(index, key):
            self._pod(pod)
        if self._pod_groups is not None:
            for group in self._pod_groups.store.by_index(index, key):
                self._group(group)
