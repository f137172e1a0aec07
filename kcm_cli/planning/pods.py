"""The state of a pod as its controller sees it: terminal, active, ready, available.

upstream: pkg/api/v1/pod/util.go, pkg/controller/controller_utils.go
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby

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


def is_rejected(pod: Pod) -> bool:
    """Whether the pod has failed before any of its containers had a state: its node did not admit it."""
    status = pod.status
    return status.phase == "Failed" and not (status.container_statuses or status.init_container_statuses)


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

    Of two pods whose times are similar and differ, the uid decides; of two with the same time, what follows. Such
    comparisons can form a circle, for which upstream's order depends on the input. Here pods with similar times are
    sorted by uid, then neighbors with the same time among themselves: without a circle, that is upstream's order.
    """
    crowd = Counter(pod.spec.node_name for pod in related if is_active(pod))
    age = _Ages(now)
    heads = []
    for number, pod in enumerate(pods):
        node, ready = pod.spec.node_name, is_ready(pod)
        since, similar = age(ready_since(pod) if ready else None)
        cost = deletion_cost(pod) if costs and pod.metadata.annotations else 0
        head = bool(node), PHASES.get(pod.status.phase, 0), ready, cost, -crowd[node], similar
        heads.append((*head, pod.uid, number, since))
    heads.sort()
    found: list[Pod] = []
    for _, alike in groupby(heads, lambda head: (head[:6], head[-1])):
        some = [pods[head[-2]] for head in alike]
        found += some if len(some) == 1 else _by_restarts(some, age)
    return found


def _by_restarts(pods: list[Pod], age: "_Ages") -> Iterator[Pod]:
    """Those that have been ready for the same time, by the criteria that follow."""
    tails = []
    for number, pod in enumerate(pods):
        regular, sidecar = restarts(pod)
        since, similar = age(pod.metadata.creation_timestamp)
        tails.append((-regular, -sidecar, similar, pod.uid, number, since))
    tails.sort()
    for _, alike in groupby(tails, lambda tail: (tail[:3], tail[-1])):
        yield from sorted((pods[tail[-2]] for tail in alike), key=lambda pod: controller_of(pod) is None)


class _Ages:
    """Times as seconds before ``now``, and their powers of two in nanoseconds, the first for no time. Many pods share
    them."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._known: dict[str | None, tuple[float | None, int]] = {None: (None, -2)}

    def __call__(self, time: str | None) -> tuple[float | None, int]:
        known = self._known.get(time)
        if known is None:
            age_s = (self._now - parse_time(time or "")).total_seconds()
            known = self._known[time] = age_s, int(math.log2(age_s * 1e9)) if age_s > 0 else -1
        return known


def restarts(pod: Pod) -> tuple[int, int]:
    """The highest restart counts of a container and of a sidecar."""
    sidecars = {c.name for c in pod.spec.init_containers if c.restart_policy == "Always"}
    regular = max((status.restart_count for status in pod.status.container_statuses), default=0)
    sidecar = max(
        (status.restart_count for status in pod.status.init_container_statuses if status.name in sidecars),
        default=0,
    )
    return regular, sidecar
