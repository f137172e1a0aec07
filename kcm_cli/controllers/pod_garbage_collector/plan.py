"""Which pods nobody else will ever remove.

upstream: pkg/controller/podgc/gc_controller.go
"""

from collections.abc import Callable, Iterable
from enum import Enum

from kcm_cli.api.core import Node, Pod
from kcm_cli.planning.nodes import is_out_of_service, is_ready


class Reason(Enum):
    """Why a pod is removed; the value labels the metrics."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


def terminated(pods: Iterable[Pod], threshold: int) -> list[Pod]:
    """The oldest finished pods beyond the threshold, evicted ones first; none for a threshold of 0 or less."""
    if threshold <= 0:
        return []
    done = [pod for pod in pods if pod.status.phase not in ("Pending", "Running", "Unknown")]
    return sorted(done, key=_age)[: max(0, len(done) - threshold)]


def out_of_service(pods: Iterable[Pod], node_of: Callable[[str], Node | None]) -> list[Pod]:
    """Terminating pods on nodes that are not ready and marked as out of service."""
    found = []
    for pod in pods:
        node = node_of(pod.spec.node_name) if pod.deleting and pod.spec.node_name else None
        if node is not None and not is_ready(node) and is_out_of_service(node):
            found.append(pod)
    return sorted(found, key=_age)


def unscheduled(pods: Iterable[Pod]) -> list[Pod]:
    """Terminating pods that never got a node: no kubelet will end them."""
    return [pod for pod in pods if pod.deleting and not pod.spec.node_name]


def _age(pod: Pod) -> tuple[bool, str, str]:
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    return (not evicted, pod.metadata.creation_timestamp or "", pod.name)
