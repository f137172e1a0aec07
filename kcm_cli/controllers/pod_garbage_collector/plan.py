"""Decides which pods to delete: those that no kubelet or other controller deletes.

upstream: pkg/controller/podgc/gc_controller.go
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from heapq import merge
from itertools import islice

from kcm_cli.api.core import Node, Pod
from kcm_cli.planning.nodes import is_out_of_service, is_ready
from kcm_cli.planning.pods import is_terminal

ENDED, LEAVING = "ended", "leaving"


class Reason(Enum):
    """Why a pod is deleted. The value is a label of the metrics."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


def word(reason: Reason, pod: Pod, threshold: int) -> str:
    """The reason for logs."""
    match reason:
        case Reason.TERMINATED:
            return f"more than {threshold} terminated pods"
        case Reason.OUT_OF_SERVICE:
            return f"node {pod.spec.node_name} is out of service"
        case Reason.ORPHANED:
            return f"node {pod.spec.node_name} is gone"
        case Reason.UNSCHEDULED:
            return "terminating and never scheduled"


def phase_index(pod: Pod) -> tuple[str, ...]:
    """The index function: ``ENDED`` for a pod that has ended, ``LEAVING`` for one that is being deleted (or both)."""
    if not pod.deleting:
        return (ENDED,) if is_terminated(pod) else ()
    return (ENDED, LEAVING) if is_terminated(pod) else (LEAVING,)


def is_terminated(pod: Pod) -> bool:
    """Whether a pod has ended. One without a phase counts as ended, as upstream."""
    return pod.status.phase not in ("Pending", "Running", "Unknown")


def is_held(pod: Pod) -> bool:
    """Whether nothing but finalizers keeps a pod: it has ended, and was deleted without a grace period. Another
    deletion changes nothing."""
    meta = pod.metadata
    deleted = meta.deletion_timestamp is not None and meta.deletion_grace_period_seconds == 0
    return deleted and bool(meta.finalizers) and is_terminal(pod)


def plan(pod: Pod, node_of: Callable[[str], Node | None]) -> Reason | None:
    """Why a pod that is being deleted is deleted by force: its node is not ready and has the out-of-service taint, or
    the pod was never bound to a node, so that no kubelet deletes it."""
    if not pod.deleting or is_held(pod):
        return None
    if not pod.spec.node_name:
        return Reason.UNSCHEDULED
    return Reason.OUT_OF_SERVICE if is_shut_down(node_of(pod.spec.node_name)) else None


def is_shut_down(node: Node | None) -> bool:
    """Whether a node is not ready and has the out-of-service taint."""
    return node is not None and not is_ready(node) and is_out_of_service(node)


def age(pod: Pod) -> tuple[bool, str, str]:
    """The sort key: evicted pods first, then by creation time and name."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return (not evicted, pod.metadata.creation_timestamp or "", pod.name)


def oldest_first(runs: Iterable[list[Pod]], count: int) -> Iterator[Pod]:
    """The first pods by ``age``, one after the other. ``runs``: each sorted."""
    return islice(merge(*runs, key=age), max(0, count))
