"""What a kubelet writes of a pod's status, and when it must write it again.

upstream: pkg/kubelet/status/status_manager.go
"""

from collections.abc import Sequence

from kcm_cli.api.core import Condition
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_list
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.sandbox.nodes.conditions import Reported
from kcm_cli.sandbox.views import SimulatedPod, SimulatedPodStatus


def status_patch(new: Doc, old: Doc) -> Doc:
    """A merge patch with the whole new status, which removes the fields that only the old one has."""
    patch: Doc = {**dict.fromkeys(old.keys() - new.keys()), **new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            patch[name] = status_patch(value, before)
    return patch


def shown_by(pod: SimulatedPod, version: str, reported: bytes) -> Doc:
    """The fields to remove if a new status lacks them: of the last one that was reported, or, if the pod is newer, of
    what it shows, whoever has written it.

    version, reported: of the last report, as JSON; empty if there was none.
    """
    if reported and not _is_newer(pod.metadata.resource_version, version):
        return codec.decode_doc(reported)
    found, whole = pod.status, pod.status.resources
    shown: Doc = {
        "podIP": found.pod_ip,
        "podIPs": found.pod_ips,
        "initContainerStatuses": found.init_container_statuses,
        "ephemeralContainerStatuses": found.ephemeral_container_statuses,
        "allocatedResources": found.allocated_resources,
        "resources": None if whole is None else _given({"requests": whole.requests, "limits": whole.limits}),
    }
    return _given(shown)


def _given(fields: Doc) -> Doc:
    return {name: value for name, value in fields.items() if value}


def with_removed_reasons(status: Doc, pod: SimulatedPod, before: Sequence[Condition | Reported]) -> Doc:
    """The status with null for absent reasons and messages of conditions that had some, so that the patch removes them.

    before: what was reported last, which the pod may not show yet.
    """
    had = {condition.type for condition in (*pod.status.conditions, *before) if condition.reason or condition.message}
    conditions = status.get("conditions")
    if not had or not isinstance(conditions, list):
        return status
    whole = [{"reason": None, "message": None, **c} if c["type"] in had else c for c in conditions]
    return {**status, "conditions": whole}


def with_removed_addresses(status: Doc, pod: SimulatedPod) -> Doc:
    """The status that replaces the addresses of the pod, or of its host, where the pod has others: those of another
    client, or of its node before it was added again. A patch merges them, and the API server refuses two of a family.
    """
    found = pod.status
    if any(one.ip != status.get("podIP") for one in found.pod_ips):
        status = _replacing(status, "podIPs")
    if found.host_ip and "hostIP" in status and found.host_ip != status["hostIP"]:
        status = _replacing(status, "hostIPs")
    return status


def _replacing(status: Doc, name: str) -> Doc:
    """The status with a list that is not merged."""
    return {**status, name: [{"$patch": "replace"}, *nested_list(status, name)]}


def contradicted(pod: SimulatedPod, version: str, conditions: Sequence[Condition | Reported], reported: bytes) -> bool:
    """Whether another client has changed what the kubelet reported since its last write (``version``). The node
    lifecycle controller does so with conditions while a node sends no heartbeats.

    reported: the status as JSON.
    """
    if not _is_newer(pod.metadata.resource_version, version):
        return False
    current = {c.type: (c.status, c.reason, c.message) for c in pod.status.conditions}
    ours = {c.type: (c.status, c.reason, c.message) for c in conditions}
    return any(current.get(type_) != said for type_, said in ours.items()) or _differ(
        pod.status, codec.decode(reported, SimulatedPodStatus)
    )


def _differ(found: SimulatedPodStatus, reported: SimulatedPodStatus) -> bool:
    return any(getattr(found, name) != getattr(reported, name) for name in _REPORTED)


_REPORTED = (
    *("phase", "start_time", "host_ip", "pod_ip", "pod_ips", "resources", "allocated_resources"),
    *("init_container_statuses", "container_statuses", "ephemeral_container_statuses"),
)
"""What else a kubelet reports, by the names in views. It keeps the reason and message that others give with its
phase."""


def _is_newer(version: str, than: str) -> bool:
    new, old = parse_int64(version), parse_int64(than)
    return new is not None and old is not None and new > old
