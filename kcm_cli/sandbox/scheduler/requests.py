"""How much of each resource a pod asks for and a node has: whole numbers, CPU in thousandths.

upstream: staging/src/k8s.io/component-helpers/resource/helpers.go#PodRequests
"""

from collections.abc import Mapping

from kcm_cli.machinery import quantity
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
Amounts = dict[str, int]

USUAL: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that asks for nothing counts as when nodes are compared."""
_NOTHING: Mapping[str, int] = {}
_POD_LEVEL = (CPU, MEMORY)


def amounts(quantities: Mapping[str, str] | None) -> Amounts:
    """Quantities as numbers; one that cannot be read counts as 0 (the API server lets none through)."""
    return {name: _number(name, text) for name, text in (quantities or {}).items()}


def of_pod(pod: SimulatedPod, missing: Mapping[str, int] = _NOTHING) -> Amounts:
    """What a pod asks for at most at any time; ``missing`` is counted where a container does not say."""
    spec = pod.spec
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _of_container(container, missing))
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.init_containers:
        asked = _of_container(container, missing)
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            _add(asked, sidecars)
        _raise(peak, asked)
    _raise(total, peak)
    if spec.resources is not None and spec.resources.requests:
        whole = amounts(spec.resources.requests)
        total.update((name, whole[name]) for name in whole if name in _POD_LEVEL or name.startswith("hugepages-"))
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    return total


def _of_container(container: SimulatedContainer, missing: Mapping[str, int]) -> Amounts:
    asked = amounts(container.resources.requests) if container.resources is not None else {}
    for name, amount in missing.items():
        asked.setdefault(name, amount)
    return asked


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, at_least: Mapping[str, int]) -> None:
    for name, amount in at_least.items():
        if amount > total.get(name, 0):
            total[name] = amount


def _number(name: str, text: str) -> int:
    try:
        parsed = quantity.parse(text)
    except FormatError:
        return 0
    return parsed.milli_value() if name == CPU else parsed.value()
