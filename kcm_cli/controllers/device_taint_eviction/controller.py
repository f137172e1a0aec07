"""device-taint-eviction-controller: deletes pods whose devices have a NoExecute taint that they do not tolerate.

Taints come from ResourceSlices of drivers and, under the gate DRADeviceTaintRules, from DeviceTaintRules. Keys are
``pod:namespace/name`` and ``rule:name``. The time of a pod's eviction is computed when something changes, and kept
until the pod is deleted.

Another queue has the taints that changed, ``rule:name`` and ``pool:driver/pool``: they may concern the claims of the
whole cluster, which are looked at without holding the loop. Nothing is evicted meanwhile.

upstream: pkg/controller/devicetainteviction
"""

import logging
from collections.abc import Iterable, Iterator
from typing import Any

from kcm_cli.api.core import PODS, Pod
from kcm_cli.api.devices import (
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from kcm_cli.component.logs import V2, V3
from kcm_cli.controllers.device_taint_eviction import plan
from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.controllers.device_taint_eviction.metrics import EvictionMetrics
from kcm_cli.controllers.device_taint_eviction.plan import Eviction
from kcm_cli.controllers.device_taint_eviction.rules import PERIOD_S, RuleStatus, users_of
from kcm_cli.controllers.device_taint_eviction.taints import (
    Names,
    Taints,
    devices_of,
    is_selected,
    names_of,
    pool_of,
)
from kcm_cli.controllers.shared.live import Live
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Keys, Queue, StartLines, Watch, gate
from kcm_cli.engine.passes import OBJECTS, for_each
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.kref import kref
from kcm_cli.machinery.meta import split_key
from kcm_cli.machinery.recent import Recent
from kcm_cli.planning.actions import EventRef, Notice
from kcm_cli.planning.pod_status import DISRUPTION_TARGET, status_patch
from kcm_cli.planning.resource_claims import BY_GROUP, has_claims, member_of, used
from kcm_cli.planning.tolerations import NO_EXECUTE
from kcm_cli.rest.errors import NotFound
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

POD, RULE, POOL = "pod", "rule", "pool"
AGAIN_S = 0.1
"""When to look again at a pod that is due while claims are compared with taints that have changed."""
BEHIND_S = 5.0
"""When to look again at a pod that is due by taints which the API server does not have."""
MANY = 10
"""Rules and pools whose claims are looked at one after the other."""
_POOL = "pool of devices"
_DISRUPTED: Doc = {
    "type": DISRUPTION_TARGET,
    "status": "True",
    "reason": "DeletionByDeviceTaintManager",
    "message": "Device Taint manager: deleting due to NoExecute taint",
}


class DeviceTaintEvictionController:
    """The controller. See the module for its keys."""

    def __init__(self, context: ControllerContext) -> None:
        self._name, self._client, self._clock = context.name, context.client, context.clock
        self._recorder = context.recorder
        self._groups = context.gates.enabled("DRAWorkloadResourceClaims")
        self._metrics = EvictionMetrics(context.metrics)
        self._taints = Taints()
        self._evictions: dict[str, tuple[ResourceClaim, Eviction]] = {}
        self._due: dict[str, tuple[str, Eviction]] = {}
        self._evicted = Recent()
        self._changed: dict[str, set[Names]] = {}
        """The devices whose taints changed, by the key under which their claims are to be looked at."""
        self._looking = False
        self._queue, _ = context.queues
        self._pods = context.cache(PODS)
        self._claims = context.cache(RESOURCE_CLAIMS)
        self._status = RuleStatus(
            self._client,
            self._clock,
            context.name,
            pods=self._pods.store,
            claims=self._claims.store,
            groups=self._groups,
        )
        self._claims.store.add_index(_POOL, _pools)
        if self._groups:
            self._pods.store.add_index(BY_GROUP, member_of)
        self._rules = context.cache(DEVICE_TAINT_RULES) if context.gates.enabled("DRADeviceTaintRules") else None
        slices = context.cache(RESOURCE_SLICES).store
        self._live: dict[type, Live[Any]] = {ResourceSlice: Live(self._client, self._clock, RESOURCE_SLICES, slices)}
        if self._rules is not None:
            self._live[DeviceTaintRule] = Live(self._client, self._clock, DEVICE_TAINT_RULES, self._rules.store)

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
        if not await self._is_tainted(key):
            return BEHIND_S
        if self._changed or self._looking or self._due.get(key) != (uid, eviction):
            return AGAIN_S
        rules = ", ".join(f"DeviceTaintRule {name}" for name, _ in eviction.rules) or "device taint"
        if await self._evict(key, uid, rules):
            late_s = (self._clock.now() - eviction.when).total_seconds()
            self._metrics.deleted(late_s)
            fields = {"pod": kref(key), "latency": format_duration(late_s), "reason": rules}
            log.log(V2, "Evicted pod by deleting it", extra={"fields": fields})
            for rule in eviction.rules:
                self._status.evicted[rule] += 1
                self._queue.add_after(*_report(rule[0]))
        self._evicted.add(uid)
        if self._due.get(key, ("", None))[0] == uid:
            del self._due[key]
        return None

    async def _is_tainted(self, key: str) -> bool:
        """Whether the rules and slices that taint a pod's devices are on the API server as the caches show them."""
        pod = self._pods.store.get(key)
        names = [f"{pod.namespace}/{one.name}" for one in used(pod)] if pod is not None else []
        claims = [self._evictions[name][0] for name in names if name in self._evictions]
        for shown in [one for claim in claims for one in self._taints.tainting(claim)]:
            found = await self._live[type(shown)].find(shown.name)
            if found is None or (found.uid, found.spec) != (shown.uid, shown.spec):
                return False
        return True

    async def _evict(self, key: str, uid: str, why: str) -> bool:
        """Delete the pod. Returns whether it is being deleted; False if it was gone already."""
        namespace, name = split_key(key)
        try:
            pod = await self._client.get(PODS, namespace, name)
            if pod.uid != uid:
                return False
            if pod.deleting:
                return True
            self._emit(key, uid, "Marking for deletion")
            patch = status_patch(pod, _DISRUPTED, self._clock.now(), tracks_generation=None)
            if patch is not None:
                await writes.send(self._client, patch)
            await self._client.delete(
                PODS, namespace, name, uid=uid, reason=f"device taint, {why}" if why else "device taint"
            )
        except NotFound:
            return False
        return True

    def _emit(self, key: str, uid: str, what: str) -> None:
        ref = EventRef(PODS.api_version, PODS.kind, *split_key(key), uid)
        self._recorder.emit(Notice(ref, "Normal", "DeviceTaintManagerEviction", what))

    # -- what a change means for pods

    def _schedule(self, pod: Pod) -> Iterator[str | After]:
        if not has_claims(pod) or pod.uid in self._evicted:
            return
        eviction = plan.plan(pod, self._evictions, groups=self._groups)
        if eviction is None:
            if self._due.pop(pod.key, None) is not None:
                self._emit(pod.key, pod.uid, "Cancelling deletion")
            return
        self._due[pod.key] = pod.uid, eviction
        key, left_s = f"{POD}:{pod.key}", (eviction.when - self._clock.now()).total_seconds()
        yield After(key, left_s) if left_s > 0 else key
        for name, _ in eviction.rules:
            yield _report(name)

    def _schedule_users(self, claim: ResourceClaim) -> Iterator[str | After]:
        for pod in users_of(claim, self._pods.store, groups=self._groups):
            yield from self._schedule(pod)

    async def sync_devices(self, key: str) -> None:
        """Look at the claims with devices whose taints changed, and queue their users: after the rules, whose status is
        written before pods are evicted for them."""
        taken = self._take(key)
        changed = frozenset(names for devices in taken.values() for names in devices)
        found: list[str | After] = [one for one in taken if one.startswith(f"{RULE}:")]

        async def look(seen: ResourceClaim) -> None:
            claim = self._claims.store.get(seen.key)
            if claim is not None and is_selected(claim, changed):
                found.extend(self._look_again(claim))

        self._looking = True
        try:
            await for_each(self._name, self._claims_of(changed), look)
        finally:
            self._looking = False
        async for one in in_turns(found, OBJECTS):
            if isinstance(one, After):
                self._queue.add_after(*one)
            else:
                self._queue.add(one)

    def _take(self, key: str) -> dict[str, set[Names]]:
        """What changed under this key, or under all keys if they are many: the claims are looked at once for these."""
        if len(self._changed) > MANY:
            taken, self._changed = self._changed, {}
            return taken
        changed = self._changed.pop(key, None)
        return {} if changed is None else {key: changed}

    def _claims_of(self, changed: Iterable[Names]) -> Iterable[ResourceClaim]:
        """Claims among which are all that have one of these devices."""
        store, found = self._claims.store, dict[str, ResourceClaim]()
        for driver, pool, _ in changed:
            if driver is None or pool is None:
                return store.list()
            found |= {claim.key: claim for claim in store.by_index(_POOL, f"{driver}/{pool}")}
        return found.values()

    def _look_again(self, claim: ResourceClaim) -> Iterator[str | After]:
        """The keys of a claim's users, if its eviction has changed with the taints."""
        before = self._evictions.get(claim.key)
        after = self._file(claim)
        if after != (before[1] if before is not None else None):
            yield from self._schedule_users(claim)

    def _file(self, claim: ResourceClaim) -> Eviction | None:
        eviction = self._taints.eviction_of(claim)
        if eviction is None:
            self._evictions.pop(claim.key, None)
        else:
            self._evictions[claim.key] = claim, eviction
        return eviction

    # -- events

    def pod_added(self, pod: Pod) -> Keys:
        """The pod's key, at the time of its eviction."""
        return self._schedule(pod)

    def pod_updated(self, old: Pod, new: Pod) -> Keys:
        """The pod's key, if its node or its claims changed."""
        same = old.spec.node_name == new.spec.node_name and list(used(old)) == list(used(new))
        return () if same else self._schedule(new)

    def pod_deleted(self, pod: Pod) -> Keys:
        """Forget the deleted pod; no key is queued."""
        self._due.pop(pod.key, None)
        return ()

    def claim_added(self, claim: ResourceClaim) -> Keys:
        """The keys of the pods that have reserved a claim."""
        self._file(claim)
        return self._schedule_users(claim)

    def claim_updated(self, old: ResourceClaim, new: ResourceClaim) -> Keys:
        """The keys of the pods that have reserved a claim, now or before."""
        self._file(new)
        if old.status.reserved_for != new.status.reserved_for:
            yield from self._schedule_users(old)
        yield from self._schedule_users(new)

    def claim_deleted(self, claim: ResourceClaim) -> Keys:
        """The keys of the pods that had reserved a claim."""
        self._evictions.pop(claim.key, None)
        return self._schedule_users(claim)

    def slice_added(self, slice_: ResourceSlice) -> Keys:
        """The pool's key, if taints of its devices changed."""
        return self._pool_changed(slice_, self._taints.put(slice_))

    def slice_updated(self, old: ResourceSlice, new: ResourceSlice) -> Keys:
        """The key of the pool whose taints changed; of both pools if the slice moved to another."""
        if pool_of(old) != pool_of(new):
            yield from self.slice_deleted(old)
        yield from self.slice_added(new)

    def slice_deleted(self, slice_: ResourceSlice) -> Keys:
        """The pool's key, if some of its devices are not tainted any more."""
        return self._pool_changed(slice_, self._taints.drop(slice_))

    def _pool_changed(self, slice_: ResourceSlice, changed: bool) -> Keys:
        if not changed:
            return ()
        driver, pool = pool_of(slice_)
        return self._devices_changed(f"{POOL}:{driver}/{pool}", {(driver, pool, None)})

    def rule_added(self, rule: DeviceTaintRule) -> Keys:
        """The rule's key."""
        before = self._taints.rules.pop(rule.name)
        if rule.spec.taint.effect != NO_EXECUTE:
            return self._rule_changed(rule.name, before)
        self._taints.rules.put(rule)
        return self._rule_changed(rule.name, before, rule)

    def rule_updated(self, old: DeviceTaintRule, new: DeviceTaintRule) -> Keys:
        """The rule's key, if its spec changed."""
        return self.rule_added(new) if old.spec != new.spec else ()

    def rule_deleted(self, rule: DeviceTaintRule) -> Keys:
        """The rule's key."""
        self._status.evicted.pop((rule.name, rule.uid), None)
        return self._rule_changed(rule.name, self._taints.rules.pop(rule.name))

    def _rule_changed(self, name: str, *rules: DeviceTaintRule | None) -> Keys:
        """The claims that these rules select are to be looked at. Other claims are evicted as before."""
        found = {names_of(rule) for rule in rules if rule is not None}
        return self._devices_changed(f"{RULE}:{name}", {names for names in found if names is not None})

    def _devices_changed(self, key: str, devices: set[Names]) -> Keys:
        self._changed.setdefault(key, set()).update(devices)
        return (key,)


def _report(rule: str) -> After:
    """The rule's key, after a delay in which more changes may come and the caches show them."""
    return After(f"{RULE}:{rule}", PERIOD_S)


def _pools(claim: ResourceClaim) -> tuple[str, ...]:
    """The index function: the pools of a claim's devices."""
    return tuple({f"{device.driver}/{device.pool}" for device in devices_of(claim)})


CONTROLLER = Controller(
    DeviceTaintEvictionController,
    (
        Queue(
            "device-taint-eviction-controller",
            watches=(
                Watch(
                    RESOURCE_CLAIMS,
                    added=DeviceTaintEvictionController.claim_added,
                    updated=DeviceTaintEvictionController.claim_updated,
                    deleted=DeviceTaintEvictionController.claim_deleted,
                ),
                Watch(
                    PODS,
                    added=DeviceTaintEvictionController.pod_added,
                    updated=DeviceTaintEvictionController.pod_updated,
                    deleted=DeviceTaintEvictionController.pod_deleted,
                ),
            ),
            sync=DeviceTaintEvictionController.sync,
            failures=Failures(retried="Evicting pod failed, will retry", level=V3, key="item"),
            workers=DeviceTaintEvictionConfig,
        ),
        Queue(  # upstream looks at the claims in the event handlers
            "tainted_devices",
            watches=(
                Watch(
                    RESOURCE_SLICES,
                    added=DeviceTaintEvictionController.slice_added,
                    updated=DeviceTaintEvictionController.slice_updated,
                    deleted=DeviceTaintEvictionController.slice_deleted,
                ),
                Watch(
                    DEVICE_TAINT_RULES,
                    added=DeviceTaintEvictionController.rule_added,
                    updated=DeviceTaintEvictionController.rule_updated,
                    deleted=DeviceTaintEvictionController.rule_deleted,
                    when=gate("DRADeviceTaintRules"),
                ),
            ),
            sync=DeviceTaintEvictionController.sync_devices,
            measured=False,
        ),
    ),
    announces=(StartLines("Starting", "Shut down controller", (("controller", "device-taint-eviction"),)),),
)
