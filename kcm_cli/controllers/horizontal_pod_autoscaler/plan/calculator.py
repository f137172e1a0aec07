"""Computes the number of replicas from metrics. Values are in thousandths; averages are truncated towards zero.

upstream: pkg/controller/podautoscaler/replica_calculator.go, metrics/utilization.go
Unlike upstream, whose integers overflow: an average over no pods is 0, a negative sum of external metric values stays
negative, and a proposal or percentage beyond 32 bits is the largest 32-bit number. docs/upstream-bugs.md has the rules
that differ.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from kcm_cli.api.core import Container, Pod, ResourceRequirements
from kcm_cli.controllers.horizontal_pod_autoscaler.plan.snapshot import Sample, Samples, Uncomputable
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quantity import parse
from kcm_cli.machinery.times import parse_time, shifted
from kcm_cli.planning.pod_resources import spec_amounts, supported
from kcm_cli.planning.pods import is_ready, ready_condition

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
CPU = "cpu"
_RESIZING = ("PodResizePending", "PodResizeInProgress")


class Tolerances(msgspec.Struct, frozen=True):
    """The tolerated deviation of usage/target from 1, below and above."""

    down: float
    up: float

    def within(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Timing(msgspec.Struct, frozen=True):
    """The times that decide whether CPU samples of young pods count."""

    now: datetime
    initialization_s: float
    readiness_delay_s: float


class Result(msgspec.Struct, frozen=True):
    """The number of replicas and, for the status, the average usage and the utilization in percent."""

    replicas: int
    usage: int
    utilization: int | None = None


class Groups(msgspec.Struct, frozen=True):
    """The pods, grouped by the use of their samples."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def group(pods: Iterable[Pod], samples: Samples, resource: str, timing: Timing) -> Groups:
    """Group the pods: deleted and ended ones are ignored, others are unready, lack a sample, or count."""
    ready = 0
    unready: set[str] = set()
    missing: set[str] = set()
    ignored: set[str] = set()
    starts_until = shifted(timing.now, -timing.initialization_s)
    for pod in pods:
        name = pod.metadata.name
        if _is_over(pod):
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif (sample := samples.get(name)) is None:
            missing.add(name)
        elif resource == CPU and _too_young(pod, sample, starts_until, timing.readiness_delay_s):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_over(pod: Pod) -> bool:
    """Whether a pod is no target of scaling: it is being deleted, or has ended, like those of a Job with its labels."""
    return pod.deleting or pod.status.phase in ("Failed", "Succeeded")


def _too_young(pod: Pod, sample: Sample, starts_until: datetime, delay_s: float) -> bool:
    """Whether a pod's CPU usage may still be that of its start: until it is ready if it has started after
    ``starts_until``, else if it has never been ready ``delay_s`` after its start."""
    condition = ready_condition(pod)
    if condition is None or pod.status.start_time is None:
        return True
    started = parse_time(pod.status.start_time)
    unready = condition.status == "False"
    young = started > starts_until
    if not unready and not young:
        return False
    changed = parse_time(condition.last_transition_time) if condition.last_transition_time else None
    if young:
        window_s = sample.window.total_seconds()
        early = changed is not None and (sample.at is None or sample.at < shifted(changed, window_s))
        return unready or early
    return changed is None or shifted(started, delay_s) > changed


class Scope(msgspec.Struct, frozen=True):
    """The arguments of all calculations by pods."""

    current: int
    pods: Sequence[Pod]
    tolerances: Tolerances
    timing: Timing


def by_utilization(
    scope: Scope, samples: Samples, request: Callable[[], Mapping[str, int]], target: int, resource: str
) -> Result:
    """The replicas by the percentage of their requests that pods use. ``request`` is called after the samples were
    checked. Raises Uncomputable."""
    groups, measured = _measured(scope, samples, resource)
    requests = request()
    ratio, utilization, average = _utilization(measured, requests, target)
    fallback = {name: requests[name] * max(100, target) // 100 for name in groups.missing}
    replicas = _settled(scope, groups, ratio)
    if replicas is None:
        filled = _filled(measured, groups, ratio, fallback)
        replicas = _rechecked(scope, ratio, _utilization(filled, requests, target)[0], len(filled))
    return Result(replicas, average, utilization)


def by_average(scope: Scope, samples: Samples, target: int, resource: str = "") -> Result:
    """The replicas by the average value of the pods. Raises Uncomputable."""
    groups, measured = _measured(scope, samples, resource)
    average = _average(measured)
    ratio = _ratio(average, target)
    replicas = _settled(scope, groups, ratio)
    if replicas is None:
        filled = _filled(measured, groups, ratio, dict.fromkeys(groups.missing, target))
        replicas = _rechecked(scope, ratio, _ratio(_average(filled), target), len(filled))
    return Result(replicas, average)


def by_value(scope: Scope, usage: int, target: int) -> Result:
    """The replicas by one value for all pods. Raises Uncomputable if ready pods have to be counted and there are no
    pods."""
    ratio = _ratio(usage, target)
    if scope.current == 0:
        return Result(_ceil(ratio), usage)
    if scope.tolerances.within(ratio):
        return Result(scope.current, usage)
    some_pods(scope.pods)
    ready = sum(1 for pod in scope.pods if pod.status.phase == "Running" and is_ready(pod))
    return Result(_not_up_below(scope.current, ratio, _ceil(ratio * ready)), usage)


def by_value_per_pod(current: int, replicas: int, usage: int, target: int, tolerances: Tolerances) -> Result:
    """The replicas by one value that is divided by the number of present ``replicas``. These may be more or fewer than
    the ``current`` size in the spec, as during a rollout."""
    wanted = current
    if replicas == 0 or not tolerances.within(_ratio(usage, target * replicas)):
        wanted = _ceil(_ratio(usage, target))
    average = MAX_INT64 if usage >= MAX_INT64 else -(-usage // replicas) if replicas else 0
    return Result(wanted, average)


def total(values: Iterable[int]) -> int:
    """The sum, at most the largest 64-bit number."""
    return min(sum(values), MAX_INT64)


def some_pods(pods: Sequence[Pod]) -> None:
    """Check that there are pods. Raises Uncomputable."""
    if not pods:
        raise Uncomputable("no pods returned by selector while calculating replica count")


def _measured(scope: Scope, samples: Samples, resource: str) -> tuple[Groups, dict[str, Sample]]:
    some_pods(scope.pods)
    groups = group(scope.pods, samples, resource, scope.timing)
    left_out = groups.ignored | groups.unready
    measured = {name: sample for name, sample in samples.items() if name not in left_out}
    if not measured:
        raise Uncomputable("did not receive metrics for targeted pods (pods might be unready)")
    return groups, measured


def _settled(scope: Scope, groups: Groups, ratio: float) -> int | None:
    """The replicas if every pod has a sample; None if missing ones have to be assumed."""
    if groups.missing or (groups.unready and ratio > 1.0):
        return None
    if scope.tolerances.within(ratio):
        return scope.current
    return _not_up_below(scope.current, ratio, _ceil(ratio * groups.ready))


def _not_up_below(current: int, ratio: float, wanted: int) -> int:
    """The wanted replicas, but no more than there are to be while the usage is below the target: the pods that are
    counted may be more than these, as in a rollout with a surge."""
    return min(wanted, current) if ratio < 1.0 else wanted


def _filled(measured: Samples, groups: Groups, ratio: float, fallback: Mapping[str, int]) -> Samples:
    """The samples, with conservative values for pods without one: zero when scaling up, ``fallback`` when scaling
    down."""
    filled = dict(measured)
    if ratio < 1.0:
        filled.update((name, Sample(fallback[name])) for name in groups.missing)
    elif ratio > 1.0:
        filled.update((name, Sample(0)) for name in groups.missing | groups.unready)
    return filled


def _rechecked(scope: Scope, ratio: float, guessed: float, count: int) -> int:
    """The replicas with assumed samples. Without change if these leave it within the tolerance or would turn its
    direction."""
    current = scope.current
    if scope.tolerances.within(guessed) or ratio < 1.0 < guessed or guessed < 1.0 < ratio:
        return current
    wanted = _ceil(guessed * count)
    if (guessed < 1.0 and wanted > current) or (guessed > 1.0 and wanted < current):
        return current
    return wanted


def _utilization(samples: Samples, requests: Mapping[str, int], target: int) -> tuple[float, int, int]:
    known = [(sample.value, requests[name]) for name, sample in samples.items() if name in requests]
    requested = sum(request for _, request in known)
    if requested == 0:
        raise Uncomputable("no metrics returned matched known pods")
    used = sum(value for value, _ in known)
    percent = min(_quotient(used * 100, requested), MAX_INT32)
    return _ratio(percent, target), percent, _quotient(used, len(known))


def _average(samples: Samples) -> int:
    return _quotient(sum(sample.value for sample in samples.values()), len(samples))


def _quotient(dividend: int, divisor: int) -> int:
    """The quotient, truncated towards zero."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _ratio(usage: int, target: int) -> float:
    if target == 0:
        return math.inf if usage > 0 else 0.0
    return usage / target


def _ceil(number: float) -> int:
    return MAX_INT32 if number >= MAX_INT32 else math.ceil(number)


def requests(pods: Iterable[Pod], resource: str, container: str, *, pod_level: bool) -> dict[str, int]:
    """The requests of pods that count, by pod name: of the named container, else of the whole pod. Raises
    Uncomputable."""
    return {pod.name: _requested(pod, resource, container, pod_level=pod_level) for pod in pods if not _is_over(pod)}


def _requested(pod: Pod, resource: str, container: str, *, pod_level: bool) -> int:
    """The request of one pod. An amount that cannot be parsed raises Uncomputable, like a missing one."""
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
    """The request of a pod as a whole: what it has while it is being resized, with which it is measured."""
    own, present = pod.spec.resources, pod.status.resources if _is_resizing(pod) else None
    wanted = (own.requests or {}).get(resource) if own is not None and supported(resource) else None
    if wanted is not None:
        had = (present.requests or {}).get(resource) if present is not None else None
        return parse(wanted if had is None else had).milli_value()
    tree = {"spec": msgspec.to_builtins(pod.spec)}
    amounts = spec_amounts(tree, "requests")
    if resource not in amounts:
        raise Uncomputable(f"missing pod-level request for {resource} in Pod {pod.name}")
    return amounts[resource].milli_value()


def _of_containers(pod: Pod, resource: str, container: str) -> int:
    spec = pod.spec
    chosen: Sequence[Container] = spec.containers
    if spec.init_containers:
        chosen = [*chosen, *(each for each in spec.init_containers if each.restart_policy == "Always")]
    if container:
        chosen = [each for each in chosen if each.name == container]
    if container and not chosen:
        raise Uncomputable(f"container {container} not found in Pod {pod.name}")
    present = _present(pod) if _is_resizing(pod) else {}
    return sum(_request(pod, each, resource, present.get(each.name)) for each in chosen)


def _request(pod: Pod, container: Container, resource: str, present: ResourceRequirements | None) -> int:
    """The request of a container. ``present``: what it has while it is being resized, with which it is measured."""
    amounts = container.resources.requests if container.resources is not None else None
    if not amounts or resource not in amounts:
        raise Uncomputable(f"missing request for {resource} in container {container.name} of Pod {pod.name}")
    had = (present.requests or {}).get(resource) if present is not None else None
    return parse(amounts[resource] if had is None else had).milli_value()


def _is_resizing(pod: Pod) -> bool:
    """Whether the node has not carried out, or not seen, what the spec says. If it is refused, it never will."""
    status = pod.status
    if 0 < status.observed_generation < pod.metadata.generation:
        return True
    return any(each.type in _RESIZING and each.status == "True" for each in status.conditions)


def _present(pod: Pod) -> dict[str, ResourceRequirements | None]:
    """The resources that containers have at present, by name."""
    return {each.name: each.resources for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
