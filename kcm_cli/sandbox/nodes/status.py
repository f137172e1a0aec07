"""A pod's status as a kubelet reports it, made from the pod, its script and its state.

Pure. The parts that other components own (conditions of other types, nominatedNodeName) are not in it: it is sent
as a strategic merge patch.

upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go
"""

import math
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import Condition
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.nodes import resources
from kcm_cli.sandbox.nodes.admission import Rejection
from kcm_cli.sandbox.nodes.conditions import (
    OWNED,
    Reported,
    evicted_condition,
    kubelet_conditions,
    restarting_condition,
)
from kcm_cli.sandbox.nodes.containers import Report, instant, report
from kcm_cli.sandbox.nodes.machine import EVICTED, RESET_S, ContainerState, PodState, Stop, finished, initialized, shown
from kcm_cli.sandbox.nodes.resizing import PENDING, Pending
from kcm_cli.sandbox.nodes.script import RESTART_ALL, ContainerScript, PodScript, Role
from kcm_cli.sandbox.views import SimulatedPod, containers_of


class PodAddresses(msgspec.Struct, frozen=True):
    """Where a pod runs: its own address (empty before it has one) and its node's."""

    pod_ip: str
    host_ip: str


class Known(msgspec.Struct, frozen=True):
    """What was reported of a pod before: its conditions, and a deferred resize."""

    conditions: Sequence[Condition | Reported] = ()
    pending: Pending | None = None


def render(
    pod: SimulatedPod,
    script: PodScript,
    state: PodState,
    place: PodAddresses,
    now: float,
    known: Known,
) -> tuple[Doc, tuple[Reported, ...]]:
    """The status to report at ``now``, and its conditions."""
    done = finished(script, state)
    state = shown(script, state, now)
    initial = initialized(script, state, now)
    spec = pod.spec
    inits, regular = len(spec.init_containers), len(spec.init_containers) + len(spec.containers)
    names = {container.name: container for container in containers_of(pod)}
    lost = _lost(state.containers[:inits], len(state.containers), initial=initial) if done else range(0)
    reports = [
        report(pod, names[container.name], _probed(container, current, state.stop), current, now, lost=index in lost)
        for index, (container, current) in enumerate(zip(script.containers, state.containers, strict=True))
    ]
    phase = _phase(script, state, now, done=done)
    failing = state.stop is not None and bool(state.stop.reason)
    conditions = kubelet_conditions(
        pod, reports, "Failed" if failing else phase, sandbox=_has_sandbox(state, done), old=known.conditions, now=now
    )
    if any(rule.action == RESTART_ALL for container in script.containers for rule in container.rules):
        resets = not done and now < state.reset_at + RESET_S
        conditions = (*conditions, restarting_condition(phase, resets=resets, old=known.conditions, now=now))
    if done and state.stop is not None and state.stop.reason == EVICTED:
        conditions = (*conditions, evicted_condition(pod, state.stop.message, now))
    doc: Doc = {
        "observedGeneration": pod.metadata.generation,
        "phase": phase,
        "startTime": instant(state.accepted_at),
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "conditions": [*_pending(pod, known.pending, done), *(condition.doc() for condition in conditions)],
        "containerStatuses": _by_name(reports[inits:regular]),
    }
    if inits:
        doc["initContainerStatuses"] = [r.doc for r in reports[:inits]]
    if len(reports) > regular:
        doc["ephemeralContainerStatuses"] = _by_name(reports[regular:])
    if place.pod_ip and (state.sandbox_at is not None or pod.spec.host_network):
        doc["podIP"] = place.pod_ip
        doc["podIPs"] = [{"ip": place.pod_ip}]
    allocated, doc["resources"] = resources.allocated_and_actual(pod, running=phase == "Running")
    if allocated:
        doc["allocatedResources"] = allocated
    if state.stop is not None and state.stop.reason and done:
        doc["reason"], doc["message"] = state.stop.reason, state.stop.message
    return doc, conditions


def _probed(container: ContainerScript, current: ContainerState, stop: Stop | None) -> ContainerScript:
    """A container's script. Startup is not probed while a pod is being stopped: what has not started up does not.

    upstream: pkg/kubelet/kubelet.go#SyncTerminatingPod
    """
    if stop is None or current.started_at is None:
        return container
    if current.started_at + container.probing(current.starts).started_s <= stop.at:
        return container
    return replace(container, started_s=math.inf, ready_s=math.inf, later=None)


def _pending(pod: SimulatedPod, pending: Pending | None, done: bool) -> list[Doc]:
    """The condition of a deferred resize, to be set or removed."""
    if pending is not None and not done:
        return [pending.condition()]
    stale = any(condition.type == PENDING for condition in pod.status.conditions)
    return [{"$patch": "delete", "type": PENDING}] if stale else []


def _by_name(reports: Sequence[Report]) -> list[Doc]:
    return [report.doc for report in sorted(reports, key=lambda report: report.name)]


def rejected(pod: SimulatedPod, rejection: Rejection, now: float) -> Doc:
    """The whole status of a pod that its kubelet rejects, without what was reported before."""
    deletions: list[Doc] = [{"$patch": "delete", "type": c.type} for c in pod.status.conditions if c.type in OWNED]
    return {
        "observedGeneration": pod.metadata.generation,
        "phase": "Failed",
        "conditions": deletions,
        "reason": rejection.reason,
        "message": f"Pod was rejected: {rejection.message}",
        "startTime": instant(now),
    }


def _lost(inits: Sequence[ContainerState], number: int, *, initial: bool) -> range:
    """The containers of a pod that has ended which are reported as lost if they did not run: all of an initialized
    one, else the init containers up to the last one that started, and always the first.

    upstream: pkg/kubelet/status/status_manager.go#TerminatePod
    """
    attempted = max((index for index, each in enumerate(inits) if each.starts), default=0)
    return range(number if initial else min(attempted + 1, len(inits)))


def _has_sandbox(state: PodState, done: bool) -> bool:
    return state.sandbox_at is not None and not done


# -- phase


def _phase(script: PodScript, state: PodState, now: float, *, done: bool) -> str:
    if done:
        return "Succeeded" if _succeeded(script, state) else "Failed"
    pairs = list(zip(script.containers, state.containers, strict=True))
    mains = [current for container, current in pairs if container.role is Role.MAIN]
    init = any(current.started_at is not None for container, current in pairs if container.role is Role.INIT)
    if init or not all(current.starts for current in mains):
        return "Pending"
    again = all(current.fresh for current in mains)  # all containers are being restarted
    return "Pending" if again and any(_is_starting(*pair, now) for pair in pairs) else "Running"


def _is_starting(container: ContainerScript, current: ContainerState, now: float) -> bool:
    """Whether it is a sidecar that runs and has not started up yet."""
    if container.role is not Role.SIDECAR or current.started_at is None:
        return False
    return now < current.started_at + container.probing(current.starts).started_s


def _succeeded(script: PodScript, state: PodState) -> bool:
    if state.stop is not None and state.stop.reason:
        return False
    for container, current in zip(script.containers, state.containers, strict=True):
        if container.role in (Role.INIT, Role.MAIN) and (current.exit is None or current.exit.code != 0):
            return False
    return True
