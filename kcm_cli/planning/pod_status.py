"""Changes that controllers make to a pod's status: a condition, and a final phase.

upstream: pkg/util/pod/pod.go#PatchPodStatus, pkg/api/v1/pod/util.go#UpdatePodCondition
"""

from datetime import datetime

from kcm_cli.api.core import PODS, Pod
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Patch
from kcm_cli.planning.conditions import find
from kcm_cli.planning.pods import is_terminal

DISRUPTION_TARGET = "DisruptionTarget"


def status_patch(
    pod: Pod,
    condition: Doc | None,
    now: datetime,
    *,
    failed: bool = False,
    tracks_generation: bool | None = True,
    unchanged: bool = False,
) -> Patch | None:
    """A patch of the status subresource; None if nothing changes.

    condition: type, status, reason and message. failed: set the phase to Failed unless it is final, and
    observedGeneration. tracks_generation: gate PodObservedGenerationTracking; None for a condition without that
    generation. unchanged: the precondition is the pod's resourceVersion, not only its uid.
    """
    status: Doc = {}
    if failed and not is_terminal(pod):
        status["phase"] = "Failed"
    new = _condition(pod, condition, now, tracks_generation) if condition is not None else None
    if new is not None:
        status["conditions"] = [new]
    if not status:
        return None
    if failed and (tracks_generation or pod.status.observed_generation):
        status["observedGeneration"] = pod.metadata.generation
    precondition = {"uid": pod.uid} | ({"resourceVersion": pod.metadata.resource_version} if unchanged else {})
    body: Doc = {"metadata": precondition, "status": status}
    reason = str(condition.get("reason", "")) if condition is not None else "pod has failed"
    return Patch(PODS, pod.namespace, pod.name, body, subresource="status", reason=reason)


def _condition(pod: Pod, condition: Doc, now: datetime, tracks: bool | None) -> Doc | None:
    current = find(pod.status.conditions, str(condition["type"]))
    new = dict(condition)
    if tracks is not None and (tracks or (current is not None and current.observed_generation)):
        new["observedGeneration"] = pod.metadata.generation
    if current is not None:
        same = (current.status, current.reason, current.message)
        if same == (condition["status"], condition.get("reason", ""), condition.get("message", "")):
            return None
    if current is None or current.status != condition["status"]:
        new["lastTransitionTime"] = format_time(now)
    return new
