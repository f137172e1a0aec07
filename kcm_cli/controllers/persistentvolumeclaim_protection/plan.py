"""Which claims a pod names, and whether it uses one.

upstream: pkg/controller/volume/pvcprotection/pvc_protection_controller.go
"""

from kcm_cli.api.core import PersistentVolumeClaim, Pod, Volume
from kcm_cli.machinery.meta import controller_of
from kcm_cli.planning.pods import is_terminal

FINALIZER = "kubernetes.io/pvc-protection"


def claims_of(pod: Pod) -> tuple[str, ...]:
    """The keys of the claims of a pod's volumes, those made for ephemeral volumes included."""
    names = (_claim_name(pod, volume) for volume in pod.spec.volumes)
    return tuple(f"{pod.namespace}/{name}" for name in names if name)


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod keeps a claim of its namespace from going.

    One that is on no node does not: no kubelet starts a pod whose claim is being deleted.
    """
    if not pod.spec.node_name:
        return False
    return any(
        _claim_name(pod, volume) == claim.name and (volume.ephemeral is None or _mounts_own(pod, claim))
        for volume in pod.spec.volumes
    )


def may_free(pod: Pod) -> bool:
    """Whether a pod that is there may be one that uses its claims no more."""
    return not pod.spec.node_name or pod.deleting or is_terminal(pod)


def _claim_name(pod: Pod, volume: Volume) -> str:
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def _mounts_own(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """The claim was made for this pod, which its kubelet has not shut down yet."""
    owner = controller_of(claim)
    shut_down = pod.deleting and pod.metadata.deletion_grace_period_seconds == 0
    return owner is not None and owner.uid == pod.uid and not shut_down
