"""Decides how many pods of a budget may be evicted.

upstream: pkg/controller/disruption/disruption.go
"""

from datetime import datetime, timedelta

import msgspec

from kcm_cli.api.core import Condition, Pod
from kcm_cli.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kcm_cli.machinery.intstr import scaled_value
from kcm_cli.machinery.labels import LabelSelector, format_go
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.conditions import find, updated
from kcm_cli.planning.pods import is_ready, is_terminal

DELETION_TIMEOUT_S = 120.0
"""How long an evicted pod counts as disrupted while it still exists."""
STALE_CONDITION_S = 120.0
ALLOWED = "DisruptionAllowed"
DISRUPTION_TARGET = "DisruptionTarget"


class Snapshot(msgspec.Struct, frozen=True):
    """A budget and the pods that it selects.

    scale: the sum of their controllers' scales; 0 if the budget does not depend on it. unmanaged: some pods have no
    controller.
    """

    budget: PodDisruptionBudget
    pods: tuple[Pod, ...]
    scale: int = 0
    unmanaged: bool = False


class Evictions(msgspec.Struct, frozen=True):
    """Granted evictions: pending ones (name of the pod to time), pods whose eviction timed out, and seconds until the
    next check."""

    pending: dict[str, str]
    overdue: tuple[Pod, ...] = ()
    recheck_s: float | None = None


def depends_on_scale(budget: PodDisruptionBudget) -> bool:
    """Whether a budget depends on the scale of its pods' controllers."""
    spec = budget.spec
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def expected(snapshot: Snapshot) -> tuple[int, int]:
    """(expected pods, desired healthy). Percentages round up."""
    spec = snapshot.budget.spec
    if spec.max_unavailable is not None:
        return snapshot.scale, max(
            0, snapshot.scale - scaled_value(spec.max_unavailable, snapshot.scale, round_up=True)
        )
    if isinstance(spec.min_available, str):
        return snapshot.scale, scaled_value(spec.min_available, snapshot.scale, round_up=True)
    if spec.min_available is not None:
        return len(snapshot.pods), spec.min_available
    return 0, 0


def plan(snapshot: Snapshot, now: datetime) -> Evictions:
    """The state of the evictions that the API server granted under this budget."""
    granted = snapshot.budget.status.disrupted_pods or {}
    pending: dict[str, str] = {}
    overdue: list[Pod] = []
    recheck: float | None = None
    for pod in snapshot.pods if granted else ():
        granted_at = granted.get(pod.name)
        if granted_at is None or pod.deleting or _is_later(pod, granted_at):
            continue
        left = DELETION_TIMEOUT_S - (now - parse_time(granted_at)).total_seconds()
        if left <= 0:
            overdue.append(pod)
            continue
        pending[pod.name] = granted_at
        recheck = left if recheck is None else min(recheck, left)
    return Evictions(pending, tuple(overdue), recheck)


def _is_later(pod: Pod, granted_at: str) -> bool:
    """Whether a pod was created after the eviction of one of this name was granted: that is gone."""
    created = pod.metadata.creation_timestamp
    return created is not None and parse_time(created) > parse_time(granted_at)


def status(snapshot: Snapshot, pending: dict[str, str], now: datetime) -> PodDisruptionBudgetStatus:
    """The status of a budget. Without expected pods no disruption is allowed."""
    count, desired = expected(snapshot)
    healthy = sum(is_ready(pod) and not pod.deleting and pod.name not in pending for pod in snapshot.pods)
    allowed = max(0, healthy - desired) if count > 0 else 0
    generation = snapshot.budget.metadata.generation
    reason, state = ("SufficientPods", "True") if allowed > 0 else ("InsufficientPods", "False")
    return msgspec.structs.replace(
        snapshot.budget.status,
        observed_generation=generation,
        disrupted_pods=pending or None,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=count,
        conditions=_conditions(snapshot.budget, state, reason, "", generation, now),
    )


def counts_alike(old: Pod, new: Pod) -> bool:
    """Whether two versions of a pod count the same in a budget that selects both."""
    return (
        old.status == new.status
        and old.deleting == new.deleting
        and controller_of(old) == controller_of(new)
        and old.spec.node_name == new.spec.node_name
    )


def failed_status(budget: PodDisruptionBudget, error: str, now: datetime) -> PodDisruptionBudgetStatus:
    """The status after an error: no disruption is allowed."""
    seen = budget.status.observed_generation
    conditions = _conditions(budget, "False", "SyncFailed", error, seen, now)
    return msgspec.structs.replace(budget.status, disruptions_allowed=0, conditions=conditions)


def _conditions(
    budget: PodDisruptionBudget, state: str, reason: str, message: str, generation: int, now: datetime
) -> tuple[Condition, ...]:
    new = Condition(
        ALLOWED, state, reason, message, last_transition_time=format_time(now), observed_generation=generation
    )
    return updated(budget.status.conditions, new)


def stale_in_s(pod: Pod, now: datetime) -> float | None:
    """Seconds until a pod's DisruptionTarget condition is stale (0: it is); None if there is nothing to reset.

    The condition is reset if the announced disruption does not happen within STALE_CONDITION_S.
    """
    condition = find(pod.status.conditions, DISRUPTION_TARGET)
    if pod.deleting or is_terminal(pod) or condition is None or condition.status != "True":
        return None
    if condition.reason == "TerminationByKubelet":
        return None
    if condition.last_transition_time is None:
        return 0.0
    age = now - parse_time(condition.last_transition_time)
    return max(0.0, (timedelta(seconds=STALE_CONDITION_S) - age).total_seconds())


def unmanaged_text(selector: LabelSelector | None) -> str:
    """The text about pods without a controller, with the selector in Go's format."""
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {format_go(selector)}) were found to be unmanaged. As a "
        "result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To "
        'account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
