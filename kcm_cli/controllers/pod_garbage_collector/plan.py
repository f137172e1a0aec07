"""Which pods nobody else will ever remove.

upstream: pkg/controller/podgc/gc_controller.go
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from heapq import merge
from itertools import islice

from kcm_cli.api.core import Node, Pod
from kcm_cli.planning import nodes
from kcm_cli.planning.nodes import is_ready

ENDED, LEAVING = "ended", "leaving"


class Reason(Enum):
    """Why a pod is removed; the value labels the metrics."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


def fates(pod: Pod) -> tuple[str, ...]:
    """Index: ``ENDED`` for a pod that has, ``LEAVING`` for one that is being deleted; nothing for those that stay."""
    if not pod.deleting:
        return (ENDED,) if is_terminated(pod) else ()
    return (ENDED, LEAVING) if is_terminated(pod) else (LEAVING,)


def is_terminated(pod: Pod) -> bool:
    """Whether a pod has ended; one without a phase counts as such."""
    return pod.status.phase not in ("Pending", "Running", "Unknown")


def is_out_of_service(pod: Pod, node_of: Callable[[str], Node | None]) -> bool:
    """Whether a pod is terminating on a node that is not ready and marked as out of service."""
    node = node_of(pod.spec.node_name) if pod.deleting and pod.spec.node_name else None
    return node is not None and not is_ready(node) and nodes.is_out_of_service(node)


def is_unscheduled(pod: Pod) -> bool:
    """Whether a pod is terminating that never got a node: no kubelet will end it."""
    return pod.deleting and not pod.spec.node_name


def age(pod: Pod) -> tuple[bool, str, str]:
    """The order in which pods are removed: evicted ones first, then by creation and name."""
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return (not evicted, pod.metadata.creation_timestamp or "", pod.name)


def oldest_first(runs: Iterable[list[Pod]], count: int) -> Iterator[Pod]:
    """The first pods by ``age``, one after the other. ``runs``: each sorted."""
    return islice(merge(*runs, key=age), max(0, count))
