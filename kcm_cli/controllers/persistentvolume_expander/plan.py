"""What there is to say, and to note, about a claim that asks for more than it has.

No kind of volume is grown from here any more: all of them have drivers of their own, whose resizers do it.

upstream: pkg/controller/volume/expand/expand_controller.go
"""

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.planning.actions import Notice, Patch, ref_to
from kcm_cli.planning.csi_migration import DRIVERS, migrated_plugin
from kcm_cli.planning.volumes.matching import requested
from kcm_cli.planning.volumes.names import PRE_RESIZE_CAPACITY

SOURCE = "volume_expand"
RESIZER = "volume.kubernetes.io/storage-resizer"
_ZERO = quantity.make(0)


class NotBound(Exception):
    """The volume of a claim is bound to another one."""

    reason = "NotBound"


def capacity(claim: PersistentVolumeClaim) -> Quantity:
    """The size that a claim has."""
    return _storage(claim.status.capacity)


def grew(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    """Whether a claim asks for more than before, or has got more."""
    return requested(new) > requested(old) or capacity(new) > capacity(old)


def must_grow(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether a claim's volume is to grow, or has begun to. Raises NotBound."""
    ref = volume.spec.claim_ref
    if ref is None or ref.namespace != claim.namespace or ref.uid != claim.uid:
        raise NotBound(f"persistent Volume is not bound to PVC being updated : {claim.key}")
    return requested(claim) > capacity(claim) or PRE_RESIZE_CAPACITY in volume.annotations


def waiting(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Notice:
    """The Event that says who is to make the volume larger."""
    plugin = migrated_plugin(volume)
    text = "waiting for an external controller to expand this PVC"
    if plugin:
        text = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    return Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), "Normal", "ExternalExpanding", text)


def resizer(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Patch | None:
    """Names the resizer of a volume that was moved to a CSI driver; None where it is named, or there is no need."""
    plugin = migrated_plugin(volume)
    if not plugin or claim.annotations.get(RESIZER) == DRIVERS[plugin]:
        return None
    version = claim.metadata.resource_version
    body: Doc = {"metadata": {"annotations": {RESIZER: DRIVERS[plugin]}, "resourceVersion": version, "uid": claim.uid}}
    return Patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, body, subresource="status")


def not_named(claim: PersistentVolumeClaim, error: Exception) -> Notice:
    """The Event that says why the resizer could not be named."""
    text = f"error setting resizer annotation to pvc {claim.key}, with error {error}"
    return Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), "Warning", "ExternalExpanding", text)


def _storage(amounts: dict[str, str] | None) -> Quantity:
    text = (amounts or {}).get("storage")
    return quantity.parse(text) if text else _ZERO
