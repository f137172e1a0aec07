"""What the pods request of a resource, in thousandths.

upstream: pkg/controller/podautoscaler/replica_calculator.go#calculateRequests
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.api.core import Container, Pod
from kcm_cli.controllers.horizontal_pod_autoscaler.snapshot import Uncomputable
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quantity import ZERO, parse
from kcm_cli.planning.pod_resources import spec_amounts
from kcm_cli.planning.pod_totals import supported


def requests(pods: Iterable[Pod], resource: str, container: str, *, pod_level: bool) -> dict[str, int]:
    """By pod name: of one container where it is named, else of the whole pod. Raises Uncomputable."""
    return {pod.name: _requested(pod, resource, container, pod_level=pod_level) for pod in pods}


def _requested(pod: Pod, resource: str, container: str, *, pod_level: bool) -> int:
    """An amount that cannot be read is as one that is missing: nobody can say what share of it is used."""
    try:
        if pod_level and not container and _has_own(pod):
            return _of_pod(pod, resource)
        return _of_containers(pod, resource, container)
    except FormatError as error:
        raise Uncomputable(f"unreadable request for {resource} in Pod {pod.name}: {error}") from None


def _has_own(pod: Pod) -> bool:
    own = pod.spec.resources
    return own is not None and any(supported(name) for name in own.requests or {})


def _of_pod(pod: Pod, resource: str) -> int:
    tree = {"spec": msgspec.to_builtins(pod.spec)}
    amounts = spec_amounts(tree, "requests")
    overhead = pod.spec.overhead or {}
    if resource not in amounts and resource not in overhead:
        raise Uncomputable(f"missing pod-level request for {resource} in Pod {pod.name}")
    extra = parse(overhead[resource]) if resource in overhead else ZERO
    return (amounts.get(resource, ZERO) + extra).milli_value()


def _of_containers(pod: Pod, resource: str, container: str) -> int:
    running = [*pod.spec.containers, *(c for c in pod.spec.init_containers if c.restart_policy == "Always")]
    chosen = [each for each in running if not container or each.name == container]
    if container and not chosen:
        raise Uncomputable(f"container {container} not found in Pod {pod.name}")
    return sum(_request(pod, each, resource) for each in chosen)


def _request(pod: Pod, container: Container, resource: str) -> int:
    amounts = container.resources.requests if container.resources is not None else None
    if not amounts or resource not in amounts:
        raise Uncomputable(f"missing request for {resource} in container {container.name} of Pod {pod.name}")
    return parse(amounts[resource]).milli_value()
