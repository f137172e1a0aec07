"""Decides when a pod is evicted because of its devices' taints, and computes the status of a DeviceTaintRule.

upstream: pkg/controller/devicetainteviction/device_taint_eviction.go
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from kcm_cli.api.core import Condition, Pod
from kcm_cli.api.devices import AllocatedDevice, DeviceTaint, DeviceTaintRule, ResourceClaim
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import parse_time, shifted
from kcm_cli.planning.resource_claims import has_claims, is_reserved_for, not_for, tolerates, used
from kcm_cli.planning.tolerations import NO_EXECUTE

IN_PROGRESS = "EvictionInProgress"
RuleId = tuple[str, str]
"""Name and uid of a DeviceTaintRule."""


class Tainting(msgspec.Struct, frozen=True):
    """A taint of a device and its rule; None for a taint that the driver has published."""

    taint: DeviceTaint
    rule: RuleId | None = None


class Eviction(msgspec.Struct, frozen=True):
    """The time of an eviction, and the rules that contribute to it, sorted."""

    when: datetime
    rules: tuple[RuleId, ...] = ()


Evictions = Mapping[str, tuple[ResourceClaim, Eviction]]
"""The claims that have to be given up, by key."""


def matches(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Whether a rule selects a device."""
    selector = rule.spec.device_selector
    if selector is None:
        return False
    pairs = ((selector.driver, driver), (selector.pool, pool), (selector.device, device))
    return all(wanted is None or wanted == found for wanted, found in pairs)


def leave(device: AllocatedDevice, tainting: Tainting) -> datetime | None:
    """When an allocated device has to be released because of a taint; None for never, or if the time of the taint is
    invalid."""
    taint = tainting.taint
    if taint.time_added is None:
        return None
    limits = []
    for toleration in device.tolerations:
        if toleration.effect == NO_EXECUTE and tolerates(toleration, taint.key, taint.value, taint.effect):
            if toleration.toleration_seconds is None:
                return None
            limits.append(max(0, toleration.toleration_seconds))
    try:
        return shifted(parse_time(taint.time_added), min(limits, default=0))
    except FormatError:
        return None


def eviction(found: Iterable[tuple[AllocatedDevice, Tainting]]) -> Eviction | None:
    """When a claim's users have to be evicted, by the taints of its devices."""
    first: datetime | None = None
    rules: set[RuleId] = set()
    for device, tainting in found:
        when = leave(device, tainting)
        if when is None:
            continue
        first = when if first is None else min(first, when)
        if tainting.rule is not None:
            rules.add(tainting.rule)
    return None if first is None else Eviction(first, tuple(sorted(rules)))


def plan(pod: Pod, evictions: Evictions, *, groups: bool) -> Eviction | None:
    """When a pod has to be evicted: the earliest eviction of its claims. ``groups``: gate DRAWorkloadResourceClaims."""
    if not pod.spec.node_name:
        return None
    found: Eviction | None = None
    for reference in used(pod):
        claim, one = evictions.get(f"{pod.namespace}/{reference.name}", (None, None))
        if claim is None or one is None:
            continue
        if reference.generated and not_for(pod, claim, groups=groups):
            continue
        if is_reserved_for(pod, claim.status.reserved_for, groups=groups):
            found = one if found is None else _both(found, one)
    return found


def _both(one: Eviction, other: Eviction) -> Eviction:
    return Eviction(min(one.when, other.when), tuple(sorted({*one.rules, *other.rules})))


class Counts(msgspec.Struct, frozen=True):
    """The effect of a rule, or of one without effect: pods to evict, the number of their namespaces, and selected
    devices."""

    pods: int = 0
    namespaces: int = 0
    published: int = 0
    allocated: int = 0
    evicted: int = 0


def is_pending(rule: DeviceTaintRule, pod: Pod, evictions: Evictions, *, groups: bool) -> bool:
    """Whether a pod is to be evicted for a rule, and its deletion has not begun."""
    if pod.deleting or not has_claims(pod):
        return False
    found = plan(pod, evictions, groups=groups)
    return found is not None and (rule.name, rule.uid) in found.rules


def status(rule: DeviceTaintRule, counts: Counts) -> Condition:
    """The condition for the status of a rule, without a time."""
    state, reason, message = "False", "", ""
    match rule.spec.taint.effect:
        case "NoExecute" if counts.pods:
            state, reason = "True", "PodsPendingEviction"
            pods = _count(counts.pods, "pod needs", "pods need")
            message = f"{pods} to be evicted in {_namespaces(counts)}."
        case "NoExecute":
            reason = "Completed" if counts.evicted else "NotStarted"
        case "None":
            reason, message = "NoEffect", _simulated(counts)
        case _:
            reason, message = "OtherEffect", "Eviction only happens for the NoExecute effect."
    if counts.evicted:
        evicted = f"{_count(counts.evicted, 'pod', 'pods')} evicted since starting the controller."
        message = f"{message} {evicted}" if message else evicted
    return Condition(IN_PROGRESS, state, reason, message, observed_generation=rule.metadata.generation)


def _simulated(counts: Counts) -> str:
    published = _count(counts.published, "published device", "published devices")
    allocated = _count(counts.allocated, "allocated device", "allocated devices")
    pods = _count(counts.pods, "pod", "pods")
    return (
        f"{published} selected. {allocated} selected. {pods} would be evicted in {_namespaces(counts)} "
        "if the effect was NoExecute. This information will not be updated again. "
        "Recreate the DeviceTaintRule to trigger an update."
    )


def _namespaces(counts: Counts) -> str:
    return _count(counts.namespaces, "namespace", "different namespaces")


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
