"""Creates and deletes pods for an owner, with Events about the owner.

upstream: pkg/controller/controller_utils.go#RealPodControl
"""

from kcm_cli.api.core import PODS, Pod
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import Create, Delete, EventRef, Notice, Remark


def create_pod(ref: EventRef, namespace: str, body: Doc | bytes, reason: str) -> Create:
    """Create a pod. ``ref``: the owner; ``body`` may be encoded already."""
    return Create(
        PODS,
        namespace,
        body,
        done=Notice(ref, "Normal", "SuccessfulCreate", "Created pod: {name}"),
        failed=Notice(ref, "Warning", "FailedCreate", "Error creating: {error}"),
        reason=reason,
    )


def delete_pod(ref: EventRef, pod: Pod, reason: str) -> Delete:
    """Delete a pod, with its uid as the precondition."""
    return Delete(
        PODS,
        pod.namespace,
        pod.name,
        uid=pod.uid,
        done=Notice(ref, "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}"),
        failed=Notice(ref, "Warning", "FailedDelete", "Error deleting: {error}"),
        reason=reason,
        remark=Remark("Deleting pod", {"controller": ref.name, "pod": kobj(pod)}),
    )
