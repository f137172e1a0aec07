"""The resources that a pod requests and a node has, as integers; CPU in thousandths.

upstream: staging/src/k8s.io/component-helpers/resource/helpers.go#PodRequests
"""

from collections.abc import Mapping, Sequence

from kcm_cli.machinery import quantity
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.remembered import remembered
from kcm_cli.planning.pod_resources import is_refused
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
Amounts = dict[str, int]

USUAL: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that asks for nothing counts as when nodes are compared."""
_NOTHING: Mapping[str, int] = {}
_POD_LEVEL = (CPU, MEMORY)


def amounts(quantities: Mapping[str, str] | None) -> Amounts:
    """Quantities as numbers. An invalid one counts as 0 (the API server rejects these)."""
    if not quantities:
        return {}
    return {name: _thousandths(text) if name == CPU else _whole(text) for name, text in quantities.items()}


def of_pod(
    pod: SimulatedPod, missing: Mapping[str, int] = _NOTHING, *, whole: bool = True, held: bool = True
) -> Amounts:
    """The maximum of a pod's requests at any time. ``missing``: the defaults for containers without requests.

    held: for a pod that is being resized, use the maximum of requested, allocated and actual resources. whole: include
    pod-level requests.
    """
    spec = pod.spec
    given = _given(pod) if held else None
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _of_container(container, missing, given))
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            asked = _of_container(container, missing, given)
            _add(total, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            asked = _of_container(container, missing, None)
            _add(asked, sidecars)
        _raise(peak, asked)
    _raise(total, peak)
    if whole and spec.resources is not None and spec.resources.requests:
        own = amounts(spec.resources.requests)
        at_once = given.to_pod(own) if given is not None else own
        names = (name for name in spec.resources.requests if name in _POD_LEVEL or name.startswith("hugepages-"))
        total.update((name, at_once.get(name, 0)) for name in names)
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    return total


def is_resizing(pod: SimulatedPod) -> bool:
    """Whether the pod's allocated or actual resources differ from its requests."""
    given = _given(pod)
    if given is None:
        return False
    asked = amounts(pod.spec.resources.requests) if pod.spec.resources is not None else {}
    return any(held != asked for held in given.held_by_pod()) or any(
        held != requests_of(container)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for held in given.held_by_container(container)
    )


def _given(pod: SimulatedPod) -> "_Given | None":
    """The resources in the pod's status; None if no kubelet has reported any."""
    status = pod.status
    reported = status.container_statuses or status.init_container_statuses or status.resources is not None
    return _Given(pod) if reported else None


class _Given:
    """The allocated and actual resources of a pod and its containers, as its kubelet reported them."""

    def __init__(self, pod: SimulatedPod) -> None:
        status = pod.status
        self._pod = status
        self._statuses = {s.name: s for s in (*status.container_statuses, *status.init_container_statuses)}
        self._refused = is_refused((c.type, c.reason) for c in status.conditions)

    def held_by_container(self, container: SimulatedContainer) -> Sequence[Amounts]:
        status = self._statuses.get(container.name)
        if status is None or status.resources is None:
            return ()
        return _known(status.resources.requests or {}, status.allocated_resources)

    def held_by_pod(self) -> Sequence[Amounts]:
        if self._pod.resources is None:
            return ()
        return _known(self._pod.resources.requests or {}, self._pod.allocated_resources)

    def to_container(self, container: SimulatedContainer, asked: Amounts) -> Amounts:
        return self._most(asked, self.held_by_container(container))

    def to_pod(self, asked: Amounts) -> Amounts:
        return self._most(asked, self.held_by_pod())

    def _most(self, asked: Amounts, held: Sequence[Amounts]) -> Amounts:
        if not held:
            return asked
        most = {} if self._refused else dict(asked)
        for each in held:
            for name, amount in each.items():
                most[name] = max(most.get(name, amount), amount)
        return most


def _known(*quantities: Mapping[str, str] | None) -> Sequence[Amounts]:
    return [amounts(each) for each in quantities if each is not None]


def _of_container(container: SimulatedContainer, missing: Mapping[str, int], given: _Given | None) -> Amounts:
    asked = requests_of(container)
    if given is not None:
        asked = given.to_container(container, asked)
    for name, amount in missing.items():
        asked.setdefault(name, amount)
    return asked


def requests_of(container: SimulatedContainer) -> Amounts:
    """What a container requests by itself."""
    return amounts(container.resources.requests) if container.resources is not None else {}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Amounts, at_least: Mapping[str, int]) -> None:
    for name, amount in at_least.items():
        if amount > total.get(name, 0):
            total[name] = amount


@remembered(4096)
def _thousandths(text: str) -> int:
    try:
        return quantity.parse(text).milli_value()
    except FormatError:
        return 0


@remembered(4096)
def _whole(text: str) -> int:
    try:
        return quantity.parse(text).value()
    except FormatError:
        return 0
