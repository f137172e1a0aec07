"""The CPU and memory usage of simulated pods. Pure.

``sandbox.kcm.dev/cpu`` and ``sandbox.kcm.dev/memory`` on a pod, its controller or the controller of that set the usage
of each container: a quantity, or a share of its requests (``80%``); with the suffix ``.CONTAINER`` for one container.
``sandbox.kcm.dev/cpu-total`` and ``memory-total`` are divided among all running pods of the annotated object, so that
more pods have less usage each, as an autoscaler expects.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from kcm_cli.machinery import quantity
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.nodes.annotations import PREFIX, number_of
from kcm_cli.sandbox.requests import CPU, MEMORY
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedPod

IDLE: Mapping[str, int] = {CPU: 1_000_000, MEMORY: 16 << 20}
"""Nano-cores and bytes of a container without annotations."""
_UNIT = {CPU: -9, MEMORY: 0}


class Holder(msgspec.Struct, frozen=True):
    """Annotations that apply to a pod: those of the pod, its controller, or the controller of that."""

    uid: str
    annotations: Mapping[str, str]


class Usage(msgspec.Struct, frozen=True):
    """The usage of a pod's containers, by name: nano-cores and bytes."""

    pod: SimulatedPod
    containers: Mapping[str, Mapping[str, int]]

    def total(self, name: str) -> int:
        return sum(figures[name] for figures in self.containers.values())


def is_running(pod: SimulatedPod) -> bool:
    """Whether a pod has metrics."""
    return pod.status.phase == "Running"


class Usages(Iterable[Usage]):
    """The usage of running pods. All pods that share a total must be added before the first is asked for."""

    def __init__(self, pods: Iterable[tuple[SimulatedPod, Sequence[Holder]]] = ()) -> None:
        """``pods``: see ``add``."""
        self._running: list[tuple[SimulatedPod, Sequence[Holder]]] = []
        self._sharers: Counter[tuple[str, str]] = Counter()
        for pod, holders in pods:
            self.add(pod, holders)

    def add(self, pod: SimulatedPod, holders: Sequence[Holder]) -> None:
        """A pod with its holders, in order of precedence."""
        if not is_running(pod):
            return
        self._running.append((pod, holders))
        for name in (CPU, MEMORY):
            holder = _holder_of(f"{name}-total", holders)
            if holder is not None:
                self._sharers[name, holder.uid] += 1

    def __iter__(self) -> Iterator[Usage]:
        for pod, holders in self._running:
            yield _usage(pod, holders, self._sharers)


def _usage(pod: SimulatedPod, holders: Sequence[Holder], sharers: Mapping[tuple[str, str], int]) -> Usage:
    started = {status.name for status in pod.status.container_statuses if status.state and status.state.running}
    sidecars = {s.name for s in pod.status.init_container_statuses if s.state and s.state.running}
    mains = [container for container in pod.spec.containers if container.name in started]
    others = [container for container in pod.spec.init_containers if container.name in sidecars]
    found: dict[str, dict[str, int]] = {container.name: {} for container in (*mains, *others)}
    for name in (CPU, MEMORY):
        share = _share(name, holders, sharers)
        for index, container in enumerate(mains):
            if share is not None:
                found[container.name][name] = _part(share, index, len(mains))
            else:
                found[container.name][name] = _figure(name, container, holders, everyone=True)
        for container in others:
            found[container.name][name] = _figure(name, container, holders, everyone=False)
    return Usage(pod, found)


def _share(name: str, holders: Sequence[Holder], sharers: Mapping[tuple[str, str], int]) -> int | None:
    holder = _holder_of(f"{name}-total", holders)
    if holder is None:
        return None
    total = _amount(name, holder.annotations[f"{PREFIX}{name}-total"])
    return None if total is None else total // max(1, sharers[name, holder.uid])


def _part(whole: int, index: int, parts: int) -> int:
    """One of ``parts`` equal parts; the first gets the remainder, too."""
    return whole // parts + (whole % parts if index == 0 else 0)


def _figure(name: str, container: SimulatedContainer, holders: Sequence[Holder], *, everyone: bool) -> int:
    for key in (f"{name}.{container.name}", name) if everyone else (f"{name}.{container.name}",):
        holder = _holder_of(key, holders)
        if holder is None:
            continue
        text = holder.annotations[f"{PREFIX}{key}"]
        amount = _percent(name, text, container) if text.endswith("%") else _amount(name, text)
        if amount is not None:
            return amount
    return IDLE[name]


def _percent(name: str, text: str, container: SimulatedContainer) -> int | None:
    try:
        share = number_of(text[:-1])
    except FormatError:
        return None
    requests = container.resources.requests if container.resources is not None else None
    asked = _amount(name, (requests or {}).get(name, ""))
    return None if asked is None else asked * share // 100


def _amount(name: str, text: str) -> int | None:
    try:
        return max(0, quantity.parse(text).scaled_value(_UNIT[name]))
    except FormatError:
        return None


def _holder_of(key: str, holders: Sequence[Holder]) -> Holder | None:
    return next((holder for holder in holders if f"{PREFIX}{key}" in holder.annotations), None)


def written(figures: Mapping[str, int]) -> dict[str, str]:
    """The usage as metrics-server writes it: in nano-cores and kibibytes."""
    cpu, memory = figures[CPU], figures[MEMORY]
    return {CPU: f"{cpu}n" if cpu else "0", MEMORY: f"{memory >> 10}Ki" if memory else "0"}
