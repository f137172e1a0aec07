"""Decides whether pods use a claim, and what its finalizer and condition should be.

upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go
"""

from datetime import datetime

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim, Pod
from kcm_cli.api.well_known import PVC_PROTECTION
from kcm_cli.machinery.codec import Doc, decode_paths
from kcm_cli.machinery.documents import nested_list, nested_str
from kcm_cli.machinery.times import format_time
from kcm_cli.planning import protection
from kcm_cli.planning.actions import Update
from kcm_cli.planning.conditions import find
from kcm_cli.planning.pod_claims import claim_name, made_for
from kcm_cli.planning.pods import is_stopped, is_terminal

UNUSED = "Unused"
"""The condition that says since when no pod refers to a claim (gate PersistentVolumeClaimUnusedSinceTime)."""


def plan(claim: PersistentVolumeClaim, *, used: bool) -> Update | None:
    """The update of the claim's finalizer, or None. ``used``: a pod uses the claim, or that was not checked."""
    return protection.plan(PERSISTENT_VOLUME_CLAIMS, claim, PVC_PROTECTION, used=used)


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod uses a claim of its namespace, so that the claim is kept.

    An unscheduled pod does not: no kubelet starts a pod whose claim is being deleted.
    """
    if not pod.spec.node_name:
        return False
    return any(
        claim_name(pod, volume) == claim.name and (volume.ephemeral is None or _mounts_own(pod, claim))
        for volume in pod.spec.volumes
    )


def refers(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod that has not stopped names a claim of its namespace, scheduled or not."""
    return not is_stopped(pod) and any(
        claim_name(pod, volume) == claim.name and (volume.ephemeral is None or made_for(claim, pod))
        for volume in pod.spec.volumes
    )


def says_unused(claim: PersistentVolumeClaim) -> bool | None:
    """The value of a claim's Unused condition; None if it has none."""
    found = find(claim.status.conditions, UNUSED)
    return None if found is None else found.status == "True"


def status(claim: PersistentVolumeClaim, now: datetime, *, unused: bool) -> Update:
    """An update of the claim's Unused condition; other conditions are kept."""
    new: Doc = {"type": UNUSED, "status": str(unused), "lastTransitionTime": format_time(now)}
    if unused:
        new |= {"reason": "NoPodsUsingPVC", "message": "No pods are currently referencing this PVC"}
    else:
        new |= {"reason": "PodUsingPVC", "message": "A pod is currently referencing this PVC"}
    known = nested_list(decode_paths(claim.raw or b"{}", [("status", "conditions")]), "status", "conditions")
    conditions = [new if nested_str(one, "type") == UNUSED else one for one in known]
    if new not in conditions:
        conditions.append(new)
    reason = "no pod refers to it" if unused else "a pod refers to it"
    return Update(PERSISTENT_VOLUME_CLAIMS, claim, {("status", "conditions"): conditions}, "status", reason=reason)


def may_free(pod: Pod) -> bool:
    """Whether an existing pod may have stopped using its claims."""
    return not pod.spec.node_name or pod.deleting or is_terminal(pod)


def _mounts_own(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether the claim was created for this pod, and its kubelet has not shut it down yet."""
    shut_down = pod.deleting and pod.metadata.deletion_grace_period_seconds == 0
    return made_for(claim, pod) and not shut_down
