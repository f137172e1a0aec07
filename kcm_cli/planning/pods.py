"""The state of a pod as its controller sees it: terminal, active, ready, available.

upstream: pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cmp_to_key

from kcm_cli.api.core import Condition, ContainerStatus, Pod
from kcm_cli.api.well_known import DELETION_COST
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.machinery.meta import controller_of
from kcm_cli.machinery.times import parse_time
from kcm_cli.planning.conditions import find

_TERMINAL = ("Succeeded", "Failed")
PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
"""The further, the later a pod is chosen to go."""


def is_terminal(pod: Pod) -> bool:
    """Whether the phase is Succeeded or Failed."""
    phase = pod.status.phase
    return phase == "Succeeded" or phase == "Failed"


def is_placed(pod: Pod) -> bool:
    """Whether the pod is bound to a node."""
    return bool(pod.spec.node_name)


def is_active(pod: Pod) -> bool:
    """Whether the pod is neither terminal nor being deleted."""
    return pod.metadata.deletion_timestamp is None and not is_terminal(pod)


def active(pods: Iterable[Pod]) -> list[Pod]:
    """The active pods. Inlines ``is_active``, since a sync checks thousands of pods."""
    return [pod for pod in pods if pod.metadata.deletion_timestamp is None and pod.status.phase not in _TERMINAL]


def is_terminating(pod: Pod) -> bool:
    """Whether the pod is being deleted and not terminal: its containers may still run."""
    return pod.metadata.deletion_timestamp is not None and not is_terminal(pod)


def is_stopped(pod: Pod) -> bool:
    """Whether the pod is terminal, or is being deleted and no container runs.

    upstream: pkg/volume/util/util.go#IsPodTerminated
    """
    if is_terminal(pod):
        return True
    status = pod.status
    everything = (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
    return pod.deleting and all(_stands_still(one) for one in everything)


def _stands_still(container: ContainerStatus) -> bool:
    state = container.state
    return state is not None and (state.terminated is not None or state.waiting is not None)


def ready_condition(pod: Pod) -> Condition | None:
    return find(pod.status.conditions, "Ready")


def is_ready(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return condition.status == "True"
    return False


def became_ready(old: Pod, new: Pod) -> bool:
    """Whether the pod became ready by this update."""
    return is_ready(new) and not is_ready(old)


def ready_since(pod: Pod) -> str | None:
    """The time (RFC 3339) at which a ready pod became ready; None for a pod that is not ready or has no time."""
    condition = ready_condition(pod)
    if condition is None or condition.status != "True":
        return None
    return condition.last_transition_time


def is_available(pod: Pod, min_ready_s: int, now: datetime) -> bool:
    """Whether the pod has been ready for at least ``min_ready_s`` seconds."""
    if not is_ready(pod):
        return False
    if min_ready_s <= 0:
        return True
    since = ready_since(pod)
    return since is not None and (now - parse_time(since)).total_seconds() >= min_ready_s


def next_available_s(pods: Iterable[Pod], min_ready_s: int, now: datetime) -> float | None:
    """Seconds until the next ready pod becomes available; None if all are.

    upstream: pkg/controller/controller_utils.go#FindMinNextPodAvailabilityCheck
    """
    if min_ready_s <= 0:
        return None
    since = (ready_since(pod) for pod in pods)
    left = (min_ready_s - (now - parse_time(time)).total_seconds() for time in since if time is not None)
    return min((wait for wait in left if wait > 0), default=None)


def next_check_s(pods: Iterable[Pod], min_ready_s: int, now: datetime) -> float | None:
    """The same where some ready pods are not available; ``min_ready_s`` if they have no times."""
    if min_ready_s <= 0:
        return None
    soonest = next_available_s(pods, min_ready_s, now)
    return soonest if soonest is not None else float(min_ready_s)


def deletion_cost(pod: Pod) -> int:
    """The annotation's value, 0 if it is absent or not a plain int32."""
    text = pod.annotations.get(DELETION_COST, "")
    digits = text[1:] if text.startswith("-") else text
    if not digits.isascii() or not digits.isdigit() or (len(text) > 1 and text[0] == "0"):
        return 0
    value = parse_int64(text)
    return value if value is not None and -(2**31) <= value < 2**31 else 0


def rank_for_deletion(pods: Sequence[Pod], related: Iterable[Pod], now: datetime, *, costs: bool = True) -> list[Pod]:
    """The pods in the order in which they are to be deleted.

    First those that are unassigned, pending, not ready, with a low deletion cost, on a node with many ``related`` pods,
    ready for a short time, often restarted, young, in this order of criteria. Times are compared by powers of two, so
    that similar times are equal; then the uid decides. Of equal pods created at the same time, those that are being
    adopted come last. ``costs``: whether the deletion cost counts.
    """
    crowd = Counter(pod.spec.node_name for pod in related if is_active(pod))
    facts = [_Rank(pod, crowd[pod.spec.node_name], deletion_cost(pod) if costs else 0, now) for pod in pods]
    facts.sort(key=cmp_to_key(_compare))
    return [fact.pod for fact in facts]


class _Rank:
    """The sort key of a pod. ``head`` is compared first; the smaller comes first."""

    __slots__ = ("age", "head", "orphan", "pod", "ready", "ready_age", "restarts")

    def __init__(self, pod: Pod, crowd: int, cost: int, now: datetime) -> None:
        self.pod = pod
        self.orphan = controller_of(pod) is None
        self.ready = is_ready(pod)
        phase = PHASES.get(pod.status.phase, 0)
        self.head = (bool(pod.spec.node_name), phase, self.ready, cost, -crowd)
        since = ready_since(pod)
        self.ready_age = None if since is None else (now - parse_time(since)).total_seconds()
        created = pod.metadata.creation_timestamp
        self.age = None if created is None else (now - parse_time(created)).total_seconds()
        self.restarts = restarts(pod)


def restarts(pod: Pod) -> tuple[int, int]:
    """The highest restart counts of a container and of a sidecar."""
    sidecars = {c.name for c in pod.spec.init_containers if c.restart_policy == "Always"}
    regular = max((status.restart_count for status in pod.status.container_statuses), default=0)
    sidecar = max(
        (status.restart_count for status in pod.status.init_container_statuses if status.name in sidecars),
        default=0,
    )
    return regular, sidecar


def _compare(left: _Rank, right: _Rank) -> int:
    if left.head != right.head:
        return -1 if left.head < right.head else 1
    if left.ready and left.ready_age != right.ready_age:
        return _by_age(left, right, left.ready_age, right.ready_age)
    if left.restarts != right.restarts:
        return -1 if left.restarts > right.restarts else 1
    if left.age != right.age:
        return _by_age(left, right, left.age, right.age)
    if left.orphan != right.orphan:
        return -1 if right.orphan else 1
    return _by_uid(left, right)


def _by_age(left: _Rank, right: _Rank, age: float | None, other: float | None) -> int:
    """The younger first; without a time before any; by uid in the same power of two (nanoseconds)."""
    if age is None or other is None:
        return -1 if age is None else 1
    difference = _bucket(age) - _bucket(other)
    return difference if difference else _by_uid(left, right)


def _bucket(age_s: float) -> int:
    return int(math.log2(age_s * 1e9)) if age_s > 0 else -1


def _by_uid(left: _Rank, right: _Rank) -> int:
    return (left.pod.uid > right.pod.uid) - (left.pod.uid < right.pod.uid)
