"""A pod's status as a kubelet reports it, made from the pod, its script and its state.

Pure. The parts that other components own (conditions of other types, nominatedNodeName) are not in it: it is sent
as a strategic merge patch.

upstream: pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kcm_cli.api.core import Condition
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.nodes.admission import Rejection
from kcm_cli.sandbox.nodes.conditions import Reported, kubelet_conditions
from kcm_cli.sandbox.nodes.containers import instant, report
from kcm_cli.sandbox.nodes.machine import PodState, finished, initialized
from kcm_cli.sandbox.nodes.script import PodScript, Role
from kcm_cli.sandbox.views import SimulatedPod


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod runs: its own address (empty before it has one) and its node's."""

    pod_ip: str
    host_ip: str


def render(
    pod: SimulatedPod,
    script: PodScript,
    state: PodState,
    place: Place,
    now: float,
    old: Sequence[Condition | Reported],
) -> tuple[Doc, tuple[Reported, ...]]:
    """The status to report at ``now``, and its conditions; ``old`` are those reported before."""
    done = finished(script, state)
    initial = initialized(script, state, now)
    names = {c.name: c for c in (*pod.spec.init_containers, *pod.spec.containers)}
    reports = [
        report(pod, names[container.name], container, current, now, lost=done and initial)
        for container, current in zip(script.containers, state.containers, strict=True)
    ]
    phase = _phase(script, state, now, done=done)
    conditions = kubelet_conditions(pod, reports, phase, sandbox=_has_sandbox(state, done), old=old, now=now)
    inits = len(pod.spec.init_containers)
    doc: Doc = {
        "observedGeneration": pod.metadata.generation,
        "phase": phase,
        "startTime": instant(state.accepted_at),
        "hostIP": place.host_ip,
        "hostIPs": [{"ip": place.host_ip}],
        "conditions": [condition.doc() for condition in conditions],
        "containerStatuses": sorted((r.doc for r in reports[inits:]), key=lambda report: str(report["name"])),
    }
    if inits:
        doc["initContainerStatuses"] = [r.doc for r in reports[:inits]]
    if place.pod_ip and (state.sandbox_at is not None or pod.spec.host_network):
        doc["podIP"] = place.pod_ip
        doc["podIPs"] = [{"ip": place.pod_ip}]
    if allocated := allocated_resources(pod):
        doc["allocatedResources"] = allocated
    if state.stop is not None and state.stop.reason and done:
        doc["reason"], doc["message"] = state.stop.reason, state.stop.message
    return doc, conditions


def rejected(rejection: Rejection) -> Doc:
    """The whole status of a pod that its kubelet does not take."""
    return {
        "phase": "Failed",
        "reason": rejection.reason,
        "message": f"Pod was rejected: {rejection.message}",
    }


def allocated_resources(pod: SimulatedPod) -> dict[str, str]:
    """What the pod's containers ask for together; init containers and overhead are left to who compares."""
    asked = [c.resources.requests for c in pod.spec.containers if c.resources is not None and c.resources.requests]
    if len(asked) < 2:
        return asked[0] if asked else {}
    total: dict[str, quantity.Quantity] = {}
    for requests in asked:
        for name, text in requests.items():
            total[name] = total[name] + quantity.parse(text) if name in total else quantity.parse(text)
    return {name: str(amount) for name, amount in total.items()}


def _has_sandbox(state: PodState, done: bool) -> bool:
    return state.sandbox_at is not None and not done


# -- phase


def _phase(script: PodScript, state: PodState, now: float, *, done: bool) -> str:
    if done:
        return "Succeeded" if _succeeded(script, state) else "Failed"
    started = all(
        current.starts > 0
        for container, current in zip(script.containers, state.containers, strict=True)
        if container.role is Role.MAIN
    )
    return "Running" if started and initialized(script, state, now) else "Pending"


def _succeeded(script: PodScript, state: PodState) -> bool:
    if state.stop is not None and state.stop.reason:
        return False
    for container, current in zip(script.containers, state.containers, strict=True):
        if container.role is not Role.SIDECAR and (current.exit is None or current.exit.code != 0):
            return False
    return True
