"""Decides which claims a pod's ephemeral volumes need.

upstream: pkg/controller/volume/ephemeral/controller.go#handleVolume
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod, Volume
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.errors import SyncError
from kcm_cli.planning.actions import Create, Notice, ref_to
from kcm_cli.planning.pod_claims import claim_name, foreign, made_for
from kcm_cli.planning.pod_template import controller_ref

SOURCE = "ephemeral_volume"


class NotOwner(SyncError):
    """The claim with the name of an ephemeral volume was created for another pod."""


def ephemeral(pod: Pod) -> list[Volume]:
    """The ephemeral volumes of a pod; none if it is being deleted."""
    return [] if pod.deleting else [volume for volume in pod.spec.volumes if volume.ephemeral is not None]


def plan(pod: Pod, volume: Volume, claim: PersistentVolumeClaim | None) -> Create | None:
    """The creation of an ephemeral volume's claim; None if it exists. Raises NotOwner."""
    if claim is None:
        reason = f"ephemeral volume {volume.name} has no claim"
        return Create(PERSISTENT_VOLUME_CLAIMS, pod.namespace, _claim(pod, volume), reason=reason)
    if not made_for(claim, pod):
        raise NotOwner(foreign(claim, pod))
    return None


def failed(pod: Pod, volume: Volume, text: str) -> Notice:
    """The Event about a volume whose claim could not be created."""
    return Notice(ref_to(PODS, pod), "Warning", "FailedBinding", f"ephemeral volume {volume.name}: {text}")


def _claim(pod: Pod, volume: Volume) -> Doc:
    template = (volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None) or {}
    own = nested_map(template, "metadata")
    metadata: Doc = {"name": claim_name(pod, volume), "ownerReferences": [controller_ref(PODS, pod)]}
    metadata |= {field: own[field] for field in ("annotations", "labels") if own.get(field)}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }
