"""Writes the progress of evictions to the status of DeviceTaintRules (gate DRADeviceTaintRules).

A rule's condition is written at most once in PERIOD_S, and only if it changes.

upstream: pkg/controller/devicetainteviction/device_taint_eviction.go#maybeUpdateRuleStatus
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from kcm_cli.api.core import Condition, Pod
from kcm_cli.api.devices import DEVICE_TAINT_RULES, DeviceTaintRule, ResourceClaim
from kcm_cli.component.clock import Clock
from kcm_cli.controllers.device_taint_eviction import plan
from kcm_cli.controllers.device_taint_eviction.plan import Counts, Eviction, Evictions, RuleId
from kcm_cli.controllers.device_taint_eviction.taints import Taints, allocated
from kcm_cli.engine import writes
from kcm_cli.engine.door import Door
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.conditions import find
from kcm_cli.planning.resource_claims import BY_GROUP, is_group, is_pod
from kcm_cli.planning.status import applied_status
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import in_turns

PERIOD_S = 10.0


class RuleStatus:
    """Writes the status. ``manager``: the field manager, which is the controller's name."""

    def __init__(
        self,
        client: Door,
        clock: Clock,
        manager: str,
        *,
        pods: Store[Pod],
        claims: Store[ResourceClaim],
        groups: bool,
    ) -> None:
        self._client, self._clock = client, clock
        self._manager = manager
        self._pods, self._claims, self._groups = pods, claims, groups
        self.evicted: Counter[RuleId] = Counter()

    async def sync(self, rule: DeviceTaintRule, taints: Taints, evictions: Evictions) -> float | None:
        """Write the condition if it changed. Returns the seconds until the next attempt, or None."""
        current, now = find(rule.status.conditions, plan.IN_PROGRESS), self._clock.now()
        if current is not None and current.last_transition_time and _is_current(rule, current):
            age_s = (now - parse_time(current.last_transition_time)).total_seconds()
            if 0 <= age_s < PERIOD_S:  # not of a former leader whose clock was ahead
                return PERIOD_S - age_s
        wanted = plan.status(rule, await self._counts(rule, taints, evictions))
        if current is None or msgspec.structs.replace(current, last_transition_time=None) != wanted:
            await self._apply(rule, wanted, format_time(now))
        return None

    async def _counts(self, rule: DeviceTaintRule, taints: Taints, evictions: Evictions) -> Counts:
        """What the condition says. Yields to the loop in between."""
        effect, evicted = rule.spec.taint.effect, self.evicted[rule.name, rule.uid]
        if effect == "NoExecute":
            return Counts(*await self._pending(rule, evictions), evicted=evicted)
        if effect != "None":
            return Counts(evicted=evicted)
        found: dict[str, tuple[ResourceClaim, Eviction]] = {}
        devices = 0
        async for claim in in_turns(self._claims.list(), OBJECTS):
            devices += allocated(rule, claim)
            if (one := taints.eviction_of(claim, rule)) is not None:
                found[claim.key] = claim, one
        return Counts(*await self._pending(rule, found), taints.published(rule), devices, evicted)

    async def _pending(self, rule: DeviceTaintRule, evictions: Evictions) -> tuple[int, int]:
        """(number of pods to evict for a rule, number of their namespaces). No pod is evicted because of it that has
        not reserved a claim which it evicts."""
        users: dict[str, Pod] = {}
        async for claim, one in in_turns(list(evictions.values()), OBJECTS):
            if (rule.name, rule.uid) in one.rules:
                users |= {pod.key: pod for pod in users_of(claim, self._pods, groups=self._groups)}
        namespaces: list[str] = []
        async for pod in in_turns(users.values(), OBJECTS):
            if plan.is_pending(rule, pod, evictions, groups=self._groups):
                namespaces.append(pod.namespace)
        return len(namespaces), len(set(namespaces))

    async def _apply(self, rule: DeviceTaintRule, condition: Condition, now: str) -> None:
        status: Doc = {**msgspec.to_builtins(condition), "lastTransitionTime": now}
        new: Doc = {"conditions": [{"message": "", **status}]}
        await writes.send(self._client, applied_status(DEVICE_TAINT_RULES, rule, new, self._manager))


def users_of(claim: ResourceClaim, pods: Store[Pod], *, groups: bool) -> Iterator[Pod]:
    """The pods that have reserved a claim, by name. ``groups``: gate DRAWorkloadResourceClaims."""
    for consumer in claim.status.reserved_for:
        key = f"{claim.namespace}/{consumer.name}"
        if is_pod(consumer):
            pod = pods.get(key)
            if pod is not None:
                yield pod
        elif groups and is_group(consumer):
            yield from pods.by_index(BY_GROUP, key)


def _is_current(rule: DeviceTaintRule, condition: Condition) -> bool:
    return condition.observed_generation == rule.metadata.generation
