"""The resources of a pod as a whole, as its kubelet reports them.

upstream: pkg/kubelet/kubelet_pods.go#convertToAPIPodLevelResourcesStatus, pkg/kubelet/cm/helpers_linux.go
"""

from collections.abc import Mapping, Sequence

from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.pod_resources import Amounts, Tree, charged_amounts
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod

_LEAST_MILLI_CPU = 2
"""The minimum of a cgroup. A request up to it cannot be read from the cgroup, and is not reported."""
_IN_GROUPS = ("cpu", "memory")


def allocated_and_actual(pod: SimulatedPod, *, running: bool) -> tuple[dict[str, str], Doc]:
    """The requests of the pod (those at pod level, or the sum of its containers', with its overhead), and the requests
    and limits in effect. For a running pod these are read from its cgroup, which has CPU and memory only, and limits
    only if all containers have them."""
    tree = _tree(pod)
    requests, limits = charged_amounts(tree, "requests"), charged_amounts(tree, "limits")
    allocated = _texts(requests)
    if running:
        own = pod.spec.resources
        asked = (own.requests if own is not None else None) or {}
        requests = {name: amount for name, amount in requests.items() if name in asked or _is_set(name, requests)}
        limited = (own.limits if own is not None else None) or {}
        limits = {name: limit for name, limit in limits.items() if name in limited or _all_limited(pod, name)}
    actual: Doc = {"limits": _texts(limits)} if limits else {}
    if requests:
        actual["requests"] = {name: allocated[name] for name in requests}
    return allocated, actual


def _is_set(name: str, requests: Amounts) -> bool:
    return name == "memory" or (name == "cpu" and requests[name].milli_value() > _LEAST_MILLI_CPU)


def _all_limited(pod: SimulatedPod, name: str) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return name in _IN_GROUPS and all(name in (_limits(container) or ()) for container in containers)


def _limits(container: SimulatedContainer) -> Mapping[str, str] | None:
    return container.resources.limits if container.resources is not None else None


def _texts(amounts: Amounts) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


def _tree(pod: SimulatedPod) -> Tree:
    """The parts of the pod that have resources."""
    spec: Tree = {"containers": _trees(pod.spec.containers), "initContainers": _trees(pod.spec.init_containers)}
    if pod.spec.resources is not None:
        spec["resources"] = {"requests": pod.spec.resources.requests, "limits": pod.spec.resources.limits}
    return {"spec": {**spec, "overhead": pod.spec.overhead}}


def _trees(containers: Sequence[SimulatedContainer]) -> list[Tree]:
    return [
        {
            "restartPolicy": c.restart_policy,
            "resources": {"requests": c.resources.requests, "limits": c.resources.limits} if c.resources else None,
        }
        for c in containers
    ]
