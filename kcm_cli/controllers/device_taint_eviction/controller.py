"""device-taint-eviction-controller: deletes pods whose devices have got a NoExecute taint that they do not tolerate.

Taints are those that drivers publish in ResourceSlices and, under the gate DRADeviceTaintRules, those of
DeviceTaintRules. Keys are ``pod:namespace/name`` and ``rule:name``. When a pod has to go is found when something
changes, and kept until it has gone.

upstream: pkg/controller/devicetainteviction
"""

from collections.abc import Iterable

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import (
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    AllocatedDevice,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from kcm_cli.controllers.device_taint_eviction import plan
from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.controllers.device_taint_eviction.metrics import EvictionMetrics
from kcm_cli.controllers.device_taint_eviction.plan import Eviction
from kcm_cli.controllers.device_taint_eviction.rules import PERIOD_S, RuleStatus
from kcm_cli.controllers.device_taint_eviction.taints import PoolId, Taints, devices_of, pool_of
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import split_key
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.planning.pod_status import DISRUPTION_TARGET, status_patch
from kcm_cli.planning.resource_claims import BY_GROUP, is_group, is_pod, member_of
from kcm_cli.planning.tolerations import NO_EXECUTE
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.informer import AnyInformer

POD, RULE = "pod", "rule"
_POOL = "pool of devices"
_DISRUPTED: Doc = {
    "type": DISRUPTION_TARGET,
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


def build(context: ControllerContext) -> Runnable:
    controller = DeviceTaintEvictionController(context)
    count = context.config(DeviceTaintEvictionConfig).concurrent_syncs
    return context.worker(controller.queue, controller.sync, count=count, waits_for=controller.informers)


class DeviceTaintEvictionController:
    """See the module."""

    def __init__(self, context: ControllerContext) -> None:
        self._client, self._clock, self._recorder = context.client, context.clock, context.recorder
        self._groups = context.gates.enabled("DRAWorkloadResourceClaims")
        self._metrics = EvictionMetrics(context.metrics)
        self._taints = Taints()
        self._evictions: dict[str, tuple[ResourceClaim, Eviction]] = {}
        self._due: dict[str, tuple[str, Eviction]] = {}
        self._evicted = Recent()
        self.queue = context.queue(context.name)
        self._pods = context.informers.get(PODS)
        self._claims = context.informers.get(RESOURCE_CLAIMS)
        slices = context.informers.get(RESOURCE_SLICES)
        self._status = RuleStatus(
            self._client,
            self._clock,
            context.name,
            pods=self._pods.store,
            claims=self._claims.store,
            groups=self._groups,
        )
        self.informers: tuple[AnyInformer, ...] = (self._pods, self._claims, slices)
        self._claims.store.add_index(_POOL, _pools)
        if self._groups:
            self._pods.store.add_index(BY_GROUP, member_of)
        self._claims.listen(on_add=self._claim, on_update=self._claim_updated, on_delete=self._claim_gone)
        self._pods.listen(on_add=self._pod, on_update=self._pod_updated, on_delete=self._pod_gone)
        slices.listen(on_add=self._slice, on_update=self._slice_updated, on_delete=self._slice_gone)
        self._rules = (
            context.informers.get(DEVICE_TAINT_RULES) if context.gates.enabled("DRADeviceTaintRules") else None
        )
        if self._rules is not None:
            self.informers += (self._rules,)
            self._rules.listen(on_add=self._rule, on_update=self._rule_updated, on_delete=self._rule_gone)

    async def sync(self, key: str) -> float | None:
        kind, _, name = key.partition(":")
        if kind == POD:
            return await self._sync_pod(name)
        rule = self._rules.store.get(name) if self._rules is not None else None
        return None if rule is None else await self._status.sync(rule, self._taints, self._evictions)

    async def _sync_pod(self, key: str) -> float | None:
        uid, eviction = self._due.get(key, ("", None))
        if eviction is None:
            return None
        left_s = (eviction.when - self._clock.now()).total_seconds()
        if left_s > 0:
            return left_s
        if await self._evict(key, uid):
            self._metrics.deleted((self._clock.now() - eviction.when).total_seconds())
            for rule in eviction.rules:
                self._status.evicted[rule] += 1
                self._report(rule[0])
        self._evicted.add(uid)
        if self._due.get(key, ("", None))[0] == uid:
            del self._due[key]
        return None

    async def _evict(self, key: str, uid: str) -> bool:
        """Whether the pod is on its way out; not where it was gone before we came."""
        namespace, name = split_key(key)
        try:
            pod = await self._client.get(PODS, namespace, name)
            if pod.uid != uid:
                return False
            if pod.deleting:
                return True
            self._tell(key, uid, "Marking for deletion")
            patch = status_patch(pod, _DISRUPTED, self._clock.now(), states_generation=False)
            if patch is not None:
                await writes.patch(self._client, patch)
            await self._client.delete(PODS, namespace, name, uid=uid)
        except NotFound:
            return False
        return True

    def _report(self, rule: str) -> None:
        """Not at once: there may be more to tell soon, and the caches have to show it first."""
        self.queue.add_after(f"{RULE}:{rule}", PERIOD_S)

    def _tell(self, key: str, uid: str, what: str) -> None:
        ref = EventRef(PODS.api_version, PODS.kind, *split_key(key), uid)
        self._recorder.emit(Notice(ref, "Normal", "DeviceTaintManagerEviction", what))

    # -- what a change means for pods

    def _schedule(self, pod: Pod) -> None:
        if not pod.spec.resource_claims or pod.uid in self._evicted:
            return
        eviction = plan.pod_eviction(pod, self._evictions, groups=self._groups)
        if eviction is None:
            if self._due.pop(pod.key, None) is not None:
                self._tell(pod.key, pod.uid, "Cancelling deletion")
            return
        self._due[pod.key] = pod.uid, eviction
        self.queue.add_after(f"{POD}:{pod.key}", (eviction.when - self._clock.now()).total_seconds())
        for name, _ in eviction.rules:
            self._report(name)

    def _schedule_users(self, claim: ResourceClaim) -> None:
        for consumer in claim.status.reserved_for:
            key = f"{claim.namespace}/{consumer.name}"
            if is_pod(consumer):
                pod = self._pods.store.get(key)
                if pod is not None and pod.uid == consumer.uid:
                    self._schedule(pod)
            elif self._groups and is_group(consumer):
                for pod in self._pods.store.by_index(BY_GROUP, key):
                    self._schedule(pod)

    def _look_again(self, claims: Iterable[ResourceClaim]) -> None:
        """The taints have changed: claims for which that makes a difference tell their users."""
        for claim in claims:
            before = self._evictions.get(claim.key)
            after = self._file(claim)
            if after != (before[1] if before is not None else None):
                self._schedule_users(claim)

    def _file(self, claim: ResourceClaim) -> Eviction | None:
        eviction = self._taints.eviction_of(claim)
        if eviction is None:
            self._evictions.pop(claim.key, None)
        else:
            self._evictions[claim.key] = claim, eviction
        return eviction

    # -- events

    def _pod(self, pod: Pod) -> None:
        self._schedule(pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        moved = old.spec.node_name != new.spec.node_name
        if moved or old.status.resource_claim_statuses != new.status.resource_claim_statuses:
            self._schedule(new)

    def _pod_gone(self, pod: Pod) -> None:
        self._due.pop(pod.key, None)

    def _claim(self, claim: ResourceClaim) -> None:
        self._file(claim)
        self._schedule_users(claim)

    def _claim_updated(self, old: ResourceClaim, new: ResourceClaim) -> None:
        self._file(new)
        if old.status.reserved_for != new.status.reserved_for:
            self._schedule_users(old)
        self._schedule_users(new)

    def _claim_gone(self, claim: ResourceClaim) -> None:
        self._evictions.pop(claim.key, None)
        self._schedule_users(claim)

    def _slice(self, slice_: ResourceSlice) -> None:
        self._devices_changed(slice_, self._taints.put(slice_))

    def _slice_updated(self, old: ResourceSlice, new: ResourceSlice) -> None:
        if pool_of(old) != pool_of(new):
            self._slice_gone(old)
        self._slice(new)

    def _slice_gone(self, slice_: ResourceSlice) -> None:
        self._devices_changed(slice_, self._taints.drop(slice_))

    def _devices_changed(self, slice_: ResourceSlice, devices: set[str]) -> None:
        if not devices:
            return
        pool = pool_of(slice_)
        claims = self._claims.store.by_index(_POOL, "/".join(pool))
        self._look_again(claim for claim in claims if any(_is(one, pool, devices) for one in devices_of(claim)))

    def _rule(self, rule: DeviceTaintRule) -> None:
        if rule.spec.taint.effect == NO_EXECUTE:
            self._taints.rules[rule.name] = rule
        else:
            self._taints.rules.pop(rule.name, None)
        self.queue.add(f"{RULE}:{rule.name}")
        self._look_again(self._claims.store.list())

    def _rule_updated(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        if old.spec != new.spec:
            self._rule(new)

    def _rule_gone(self, rule: DeviceTaintRule) -> None:
        self._status.evicted.pop((rule.name, rule.uid), None)
        if self._taints.rules.pop(rule.name, None) is not None:
            self._look_again(self._claims.store.list())


def _is(device: AllocatedDevice, pool: PoolId, names: set[str]) -> bool:
    return (device.driver, device.pool) == pool and device.device in names


def _pools(claim: ResourceClaim) -> tuple[str, ...]:
    """Index: the pools of the devices of a claim."""
    return tuple({f"{device.driver}/{device.pool}" for device in devices_of(claim)})
