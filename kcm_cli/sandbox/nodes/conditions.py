"""The pod conditions that a kubelet owns, with upstream's reasons and messages.

upstream: pkg/kubelet/status/generate.go, pkg/kubelet/status/status_manager.go#updateLastTransitionTime
"""

from collections.abc import Iterable, Sequence

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.nodes.containers import Report, instant
from kcm_cli.sandbox.nodes.script import Role
from kcm_cli.sandbox.views import SimulatedPod

TRUE, FALSE = "True", "False"
SANDBOX, INITIALIZED, READY = "PodReadyToStartContainers", "Initialized", "Ready"
CONTAINERS_READY, SCHEDULED = "ContainersReady", "PodScheduled"
RESTARTING_ALL = "AllContainersRestarting"
OWNED = frozenset(
    (
        SANDBOX,
        INITIALIZED,
        READY,
        CONTAINERS_READY,
        SCHEDULED,
        "PodResizePending",
        "PodResizeInProgress",
        RESTARTING_ALL,
    )
)
"""The conditions that only the kubelet keeps, once a pod has a node."""
_TERMINAL = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


class Reported(msgspec.Struct, frozen=True):
    """A condition as the kubelet reports it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    generation: int = 0
    last_transition_time: str | None = None

    def doc(self) -> Doc:
        doc: Doc = {"type": self.type, "status": self.status}
        if self.generation:
            doc["observedGeneration"] = self.generation
        doc["lastProbeTime"] = None
        doc["lastTransitionTime"] = self.last_transition_time
        if self.reason:
            doc["reason"] = self.reason
        if self.message:
            doc["message"] = self.message
        return doc


_Verdict = tuple[str, str, str]
_YES: _Verdict = (TRUE, "", "")


def kubelet_conditions(
    pod: SimulatedPod,
    reports: Sequence[Report],
    phase: str,
    *,
    sandbox: bool,
    old: Sequence[Condition | Reported],
    now: float,
) -> tuple[Reported, ...]:
    """Return all conditions of a pod that the kubelet owns.

    old: the conditions so far. A condition whose status is unchanged keeps its lastTransitionTime.
    """
    containers = _containers_ready(reports, phase)
    before = {condition.type: condition for condition in old}
    initialized = before.get(INITIALIZED)
    verdicts: tuple[tuple[str, _Verdict], ...] = (
        (SANDBOX, (TRUE if sandbox else FALSE, "", "")),
        (INITIALIZED, _initialized(reports, phase, was=initialized is not None and initialized.status == TRUE)),
        (READY, _gates(pod) if containers == _YES else containers),
        (CONTAINERS_READY, containers),
        (SCHEDULED, _YES),
    )
    time = instant(now)
    generation = pod.metadata.generation
    conditions: list[Reported] = []
    for type_, (status, reason, message) in verdicts:
        known = before.get(type_)
        since = known.last_transition_time if known is not None and known.status == status else None
        conditions.append(Reported(type_, status, reason, message, generation, since or time))
    return tuple(conditions)


def restarting_condition(phase: str, *, resets: bool, old: Sequence[Condition | Reported], now: float) -> Reported:
    """The condition of a pod with rules that may restart all its containers. It has no observedGeneration."""
    status = TRUE if resets else FALSE
    known = next((each for each in old if each.type == RESTARTING_ALL and each.status == status), None)
    since = known.last_transition_time if known is not None else None
    reason = "RestartAllContainersStarted" if resets else _TERMINAL.get(phase, "")
    message = "container exited with restart policy rule" if resets else ""
    return Reported(RESTARTING_ALL, status, reason, message, 0, since or instant(now))


def evicted_condition(pod: SimulatedPod, message: str, now: float) -> Reported:
    """The condition of a pod that its kubelet has evicted."""
    generation = pod.metadata.generation
    return Reported("DisruptionTarget", TRUE, "TerminationByKubelet", message, generation, instant(now))


def _containers_ready(reports: Sequence[Report], phase: str) -> _Verdict:
    reason = _TERMINAL.get(phase)
    if reason is not None:
        return FALSE, reason, ""
    unready = [r.name for r in reports if r.role in (Role.SIDECAR, Role.MAIN) and not r.ready]
    if unready:
        return FALSE, "ContainersNotReady", f"containers with unready status: {_go_list(unready)}"
    return _YES


def _initialized(reports: Sequence[Report], phase: str, *, was: bool) -> _Verdict:
    """was: it has been initialized, and remains so, also while its init containers run again."""
    if phase == "Succeeded":
        return TRUE, "PodCompleted", ""
    if was or any(report.role is Role.MAIN and report.doc.get("containerID") for report in reports):
        return _YES
    incomplete = [
        report.name
        for report in reports
        if (report.role is Role.INIT and not report.ready) or (report.role is Role.SIDECAR and not report.started)
    ]
    if incomplete:
        return FALSE, "ContainersNotInitialized", f"containers with incomplete status: {_go_list(incomplete)}"
    return _YES


def _gates(pod: SimulatedPod) -> _Verdict:
    """Evaluate readiness gates, the conditions that other clients set."""
    messages: list[str] = []
    found = {condition.type: condition.status for condition in pod.status.conditions}
    for gate in pod.spec.readiness_gates:
        status = found.get(gate.condition_type)
        if status is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != TRUE:
            messages.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    return (FALSE, "ReadinessGatesNotReady", ", ".join(messages)) if messages else _YES


def _go_list(names: Iterable[str]) -> str:
    return f"[{' '.join(names)}]"
