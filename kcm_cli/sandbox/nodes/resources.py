"""What a pod as a whole was given, as its kubelet reports it.

upstream: pkg/kubelet/kubelet_pods.go#convertToAPIPodLevelResourcesStatus, pkg/kubelet/cm/helpers_linux.go
"""

from collections.abc import Mapping, Sequence

from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.pod_resources import Amounts, Tree, charged_amounts
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod

_LEAST_MILLI_CPU = 2
"""No group of processes gets less, so that less is not told."""
_IN_GROUPS = ("cpu", "memory")


def allocated(pod: SimulatedPod) -> dict[str, str]:
    """What the pod requests: its containers together, or itself as a whole, with its overhead."""
    return _texts(charged_amounts(_tree(pod), "requests"))


def given(pod: SimulatedPod, *, running: bool) -> Doc:
    """What the pod has. While it runs this is what its group of processes says, which knows CPU and memory only, and
    limits only where all containers have them."""
    tree = _tree(pod)
    requests, limits = charged_amounts(tree, "requests"), charged_amounts(tree, "limits")
    if running:
        own = pod.spec.resources
        asked = (own.requests if own is not None else None) or {}
        requests = {name: amount for name, amount in requests.items() if name in asked or _is_set(name, requests)}
        limited = (own.limits if own is not None else None) or {}
        limits = {name: limit for name, limit in limits.items() if name in limited or _all_limited(pod, name)}
    return {key: _texts(amounts) for key, amounts in (("limits", limits), ("requests", requests)) if amounts}


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
    """The parts of the pod that count."""
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
