"""Whether a pod uses a claim.

upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go
"""

from kcm_cli.api.core import PersistentVolumeClaim, Pod
from kcm_cli.planning.pod_claims import claim_name, made_for
from kcm_cli.planning.pods import is_terminal

FINALIZER = "kubernetes.io/pvc-protection"


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod keeps a claim of its namespace from going.

    One that is on no node does not: no kubelet starts a pod whose claim is being deleted.
    """
    if not pod.spec.node_name:
        return False
    return any(
        claim_name(pod, volume) == claim.name and (volume.ephemeral is None or _mounts_own(pod, claim))
        for volume in pod.spec.volumes
    )


def may_free(pod: Pod) -> bool:
    """Whether a pod that is there may be one that uses its claims no more."""
    return not pod.spec.node_name or pod.deleting or is_terminal(pod)


def _mounts_own(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """The claim was made for this pod, which its kubelet has not shut down yet."""
    shut_down = pod.deleting and pod.metadata.deletion_grace_period_seconds == 0
    return made_for(claim, pod) and not shut_down
