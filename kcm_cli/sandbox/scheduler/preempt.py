"""Chooses the pods of lower priority to preempt so that a pod fits. Reads the state without changing it.

upstream: pkg/scheduler/framework/preemption, pkg/scheduler/framework/plugins/defaultpreemption
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kcm_cli.api.policy import POD_DISRUPTION_BUDGETS, PodDisruptionBudget
from kcm_cli.api.resource import Resource
from kcm_cli.sandbox.scheduler.decide import filters_for, with_nominated
from kcm_cli.sandbox.scheduler.device_filter import PLUGIN as DEVICES
from kcm_cli.sandbox.scheduler.devices.views import Claim
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, selector_of
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.stores import Volumes
from kcm_cli.sandbox.scheduler.verdict import FitError, Refusal
from kcm_cli.sandbox.views import SimulatedPod

BY_SCHEDULER = "PreemptionByScheduler"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate, "
STILL_NOT = "still not schedulable, "
GAVE_BACK = "deallocation of ResourceClaim completed, "
DELETED = "deletion of ResourceClaim completed, "
STATELESS = "not found"
"""What it says where a plugin before it has refused the pod as such; nothing is preempted then."""
NO_LOWER = Refusal("DefaultPreemption", (NO_VICTIMS,))
MOST_CANDIDATES = 100
_BOTTOM = 2**31
_LATEST = "9999"


BUDGETS = Resource(POD_DISRUPTION_BUDGETS.gvr, POD_DISRUPTION_BUDGETS.kind, PodDisruptionBudget)
"""Without the raw documents that controllers need."""


class Victims(msgspec.Struct, frozen=True):
    """The pods to preempt on a node, the most important first, and the number of violated budgets."""

    node: str
    pods: tuple[PodInfo, ...]
    violations: int


class NoHelp(msgspec.Struct, frozen=True):
    """Why nothing is preempted. ``keeps_nomination``: earlier victims are still terminating."""

    message: str
    keeps_nomination: bool = False


def preempt(
    info: PodInfo, state: ClusterState, volumes: Volumes, budgets: Sequence[PodDisruptionBudget], unfit: FitError
) -> Victims | NoHelp:
    """The best victims for an unschedulable pod."""
    if unfit.before is not None and unfit.before.plugin != DEVICES:
        return NoHelp(STATELESS, keeps_nomination=True)
    devices = _device_message(info, unfit)
    reason = _not_eligible(info, state, unfit)
    if reason:
        return NoHelp(f"{devices}preemption: {reason}", keeps_nomination=True)
    candidates: list[Victims] = []
    refusals: dict[str, Refusal] = {}
    some = state.has_below(info.priority)
    for name, refusal in unfit.refusals.items():
        if not refusal.resolvable:
            continue
        if not some:
            refusals[name] = NO_LOWER
            continue
        found = victims_on(info, state, volumes, budgets, state.nodes[name])
        if isinstance(found, Victims):
            candidates.append(found)
            if len(candidates) >= MOST_CANDIDATES:
                break
        else:
            refusals[name] = found
    if not candidates:
        text = FitError(unfit.nodes, refusals, absent=NOT_HELPFUL).message()
        return NoHelp(f"{devices}preemption: {text}")
    return min(candidates, key=_cost)


def _device_message(info: PodInfo, unfit: FitError) -> str:
    """The message of upstream's DynamicResources, which may deallocate claims whose devices are where the pod cannot
    run."""
    if unfit.before is not None or not unfit.claims:
        return NO_CLAIMS
    if unfit.stale is not None:
        return DELETED
    return GAVE_BACK if any(is_idle(claim, info.pod) for claim in unfit.away) else STILL_NOT


def is_idle(claim: Claim, pod: SimulatedPod) -> bool:
    """Whether no other pod has the claim reserved."""
    users = claim.status.reserved_for
    return not users or (len(users) == 1 and users[0].uid == pod.uid)


def victims_on(
    info: PodInfo, state: ClusterState, volumes: Volumes, budgets: Sequence[PodDisruptionBudget], node: NodeInfo
) -> Victims | Refusal:
    """The fewest and least important pods to preempt on a node, or a refusal."""
    lower = [other for other in node.pods.values() if other.priority < info.priority]
    if not lower:
        return NO_LOWER
    emptied = node.copy()
    for other in lower:
        emptied.remove(other.key)
    refusal = _check(info, state, volumes, emptied)
    if refusal is not None:
        return refusal
    lower.sort(key=importance)
    protected, others = _by_budget(lower, budgets)
    victims: list[PodInfo] = []
    violations = 0
    for other in (*protected, *others):
        emptied.add(other)
        if _check(info, state, volumes, emptied) is None:
            continue
        emptied.remove(other.key)
        victims.append(other)
        violations += other in protected
    victims.sort(key=importance)
    return Victims(node.name, tuple(victims), violations)


def importance(info: PodInfo) -> tuple[int, str, str]:
    """The sort key of pods, the most important first: by priority, then by start time."""
    return (-info.priority, info.pod.status.start_time or _LATEST, info.key)


def _check(info: PodInfo, state: ClusterState, volumes: Volumes, node: NodeInfo) -> Refusal | None:
    """The refusal of a changed node, including its nominated pods with at least this priority."""
    changed = with_nominated(info, state, node)
    return filters_for(info, state.with_node(changed), volumes).check(changed)


def _not_eligible(info: PodInfo, state: ClusterState, unfit: FitError) -> str:
    pod = info.pod
    if pod.spec.preemption_policy == "Never":
        return "not eligible due to preemptionPolicy=Never."
    nominated = pod.status.nominated_node_name
    if not nominated:
        return ""
    refusal = unfit.refusals.get(nominated)
    if refusal is not None and not refusal.resolvable:
        return ""
    node = state.nodes.get(nominated)
    leaving = node.pods.values() if node is not None else ()
    if any(other.priority < info.priority and _is_preempted(other.pod) for other in leaving):
        return "not eligible due to a terminating pod on the nominated node."
    return ""


def _is_preempted(pod: SimulatedPod) -> bool:
    if not pod.deleting:
        return False
    return any(
        c.type == "DisruptionTarget" and c.status == "True" and c.reason == BY_SCHEDULER for c in pod.status.conditions
    )


def _by_budget(pods: Iterable[PodInfo], budgets: Sequence[PodDisruptionBudget]) -> tuple[list[PodInfo], list[PodInfo]]:
    """(pods whose eviction violates a budget, the other pods), in the given order."""
    allowed = {budget.uid: budget.status.disruptions_allowed for budget in budgets}
    protected: list[PodInfo] = []
    others: list[PodInfo] = []
    for info in pods:
        (protected if _violates_budget(info.pod, budgets, allowed) else others).append(info)
    return protected, others


def _violates_budget(pod: SimulatedPod, budgets: Sequence[PodDisruptionBudget], allowed: dict[str, int]) -> bool:
    """Whether a budget of the pod has no disruptions left. The pod is counted for each of its budgets."""
    overdrawn = False
    for budget in budgets if pod.labels else ():
        selector = selector_of(budget.spec.selector)
        if budget.namespace != pod.namespace or selector.empty or not selector.matches(pod.labels):
            continue
        disrupted: Mapping[str, str] = budget.status.disrupted_pods or {}
        if pod.name in disrupted:
            continue
        allowed[budget.uid] -= 1
        overdrawn = overdrawn or allowed[budget.uid] < 0
    return overdrawn


def _cost(victims: Victims) -> tuple[int, int, int, int, str, str]:
    """The sort key of victims: violated budgets, highest priority, sum of priorities, number, then the latest start."""
    pods = victims.pods
    highest = max((info.priority for info in pods), default=-_BOTTOM)
    earliest = min((i.pod.status.start_time or _LATEST for i in pods if i.priority == highest), default=_LATEST)
    return (
        victims.violations,
        highest,
        sum(info.priority + _BOTTOM for info in pods),
        len(pods),
        "".join(chr(0x10FFF - ord(character)) for character in earliest),
        victims.node,
    )
