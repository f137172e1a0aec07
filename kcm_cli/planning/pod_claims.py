"""The PersistentVolumeClaims of a pod's volumes: those that it names, and those of its ephemeral volumes.

upstream: staging/src/k8s.io/component-helpers/storage/ephemeral, pkg/controller/volume/common
"""

from kcm_cli.api.core import PersistentVolumeClaim, Pod, Volume
from kcm_cli.machinery.meta import controller_of

CLAIM = "claim"
"""The name of the index of pods by ``claims_of``."""


def claims_of(pod: Pod) -> tuple[str, ...]:
    """The keys of the claims of a pod's volumes, including those of ephemeral volumes."""
    names = [claim_name(pod, volume) for volume in pod.spec.volumes]
    return tuple([f"{pod.namespace}/{name}" for name in names if name])


def claim_name(pod: Pod, volume: Volume) -> str:
    """The name of the claim behind a volume; empty for a volume without one."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether a claim was created for an ephemeral volume of this pod, and not just under its name."""
    owner = controller_of(claim)
    return claim.namespace == pod.namespace and owner is not None and owner.uid == pod.uid


def foreign(claim: PersistentVolumeClaim, pod: Pod) -> str:
    """The error text for an ephemeral volume's claim that was not created for the pod."""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"
