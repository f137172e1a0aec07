"""What the simulated storage driver does for a claim, a volume or an attachment. Pure.

upstream: kubernetes-csi/external-provisioner, external-attacher, external-resizer (the sidecars of CSI drivers)
"""

from collections.abc import Iterable, Mapping
from zlib import crc32

import msgspec

from kcm_cli.api.core import PersistentVolumeClaim
from kcm_cli.api.storage import PersistentVolume, StorageClass, VolumeAttachment
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.durations import parse_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning.volumes.binding import claim_ref, provisioned_name
from kcm_cli.planning.volumes.classes import allows, waits_for_consumer
from kcm_cli.planning.volumes.names import (
    BETA_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER_FINALIZER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
)

DRIVER = "csi.sandbox.kcm.dev"
CLASS = "standard"
FAILED = "ProvisioningFailed"
DELAY = "sandbox.kcm.dev/provision-delay"
TOPOLOGY = "topology"
"""The StorageClass parameter with a node label: volumes get an affinity to nodes with the selected node's value."""
ATTACHER_FINALIZER = f"external-attacher/{DRIVER.replace('.', '-')}"
NEVER = "never"
_SOURCES = frozenset({"PersistentVolumeClaim", "VolumeSnapshot"})
"""Kinds of data that a driver copies into a new volume."""


def class_doc() -> Doc:
    """The default StorageClass."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
        "allowVolumeExpansion": True,
    }


def driver_doc() -> Doc:
    """The CSIDriver."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": {"name": DRIVER},
        "spec": {"attachRequired": True, "podInfoOnMount": False, "volumeLifecycleModes": ["Persistent"]},
    }


def csi_node_doc(node: str, uid: str) -> Doc:
    """The CSINode that a kubelet creates."""
    owner: Doc = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    driver: Doc = {"name": DRIVER, "nodeID": node, "topologyKeys": None}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node, "ownerReferences": [owner]},
        "spec": {"drivers": [driver]},
    }


def provision_delay_s(claim: PersistentVolumeClaim, class_: StorageClass | None) -> float | None:
    """The seconds to wait before a volume is provisioned; None if none is to be provisioned (yet)."""
    if claim.deleting or claim.spec.volume_name or class_ is None or class_.provisioner != DRIVER:
        return None
    if DRIVER not in (claim.annotations.get(name) for name in (STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER)):
        return None  # the binder has not requested it yet
    if waits_for_consumer(class_) and SELECTED_NODE not in claim.annotations:
        return None
    text = claim.annotations.get(DELAY, "0s")
    if text == NEVER:
        return None
    try:
        return max(0.0, parse_duration(text))
    except FormatError:
        return 0.0


def obstacle(claim: PersistentVolumeClaim, class_: StorageClass) -> tuple[str, str, str] | None:
    """Why no driver provisions a volume for a claim: an Event's type, reason and message. None if one does."""
    source = claim.spec.data_source
    if source is not None and source.get("kind") not in _SOURCES:
        return "Normal", "Provisioning", "Assuming an external populator will provision the volume"
    if claim.spec.selector is not None:
        why = f'failed to provision volume with StorageClass "{class_.name}": claim Selector is not supported'
        return "Warning", FAILED, why
    return None


def selected_node(claim: PersistentVolumeClaim) -> tuple[str, ...]:
    """The node that was selected for a claim without a volume: an index."""
    chosen = claim.annotations.get(SELECTED_NODE)
    return (chosen,) if chosen and not claim.spec.volume_name else ()


def any_place(
    claim: PersistentVolumeClaim, class_: StorageClass, nodes: Iterable[Mapping[str, str]]
) -> Mapping[str, str]:
    """Where the volume of a claim is to be for which no node was selected, as the label of a node. nodes: the labels of
    each. Empty if the class does not ask for a place, or no node is in one."""
    key = (class_.parameters or {}).get(TOPOLOGY, "")
    places = sorted({labels[key] for labels in nodes if key in labels and allows(class_, labels)}) if key else []
    return {key: places[crc32(claim.uid.encode()) % len(places)]} if places else {}


def volume_doc(claim: PersistentVolumeClaim, class_: StorageClass, node_labels: Mapping[str, str]) -> Doc:
    """The volume for a claim."""
    name = provisioned_name(claim)
    spec: Doc = {
        "accessModes": list(claim.spec.access_modes),
        "capacity": {"storage": asked(claim)},
        "claimRef": claim_ref(claim),
        "csi": {"driver": DRIVER, "volumeHandle": name, "fsType": "ext4"},
        "persistentVolumeReclaimPolicy": class_.reclaim_policy or "Delete",
        "storageClassName": class_.name,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
    }
    if claim.spec.volume_attributes_class_name:
        spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
    if class_.mount_options:
        spec["mountOptions"] = list(class_.mount_options)
    key = (class_.parameters or {}).get(TOPOLOGY, "")
    if key in node_labels:
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": [node_labels[key]]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": name,
            "annotations": {PROVISIONED_BY: DRIVER},
            "finalizers": [PROVISIONER_FINALIZER],
        },
        "spec": spec,
    }


def asked(claim: PersistentVolumeClaim) -> str:
    """The size that a claim requests."""
    resources = claim.spec.resources
    return ((resources.requests if resources is not None else None) or {}).get("storage", "1Gi")


def is_over(volume: PersistentVolume) -> bool:
    """Whether a volume is released and its reclaim policy is Delete."""
    released = volume.status.phase in ("Released", "Failed")
    return released and volume.spec.persistent_volume_reclaim_policy == "Delete" and not volume.deleting


def without(finalizers: tuple[str, ...], finalizer: str) -> list[str] | None:
    """The finalizers without one; None if they do not have it."""
    return [name for name in finalizers if name != finalizer] if finalizer in finalizers else None


def releasable(volume: PersistentVolume) -> bool:
    """Whether the driver's finalizer of a volume that is being deleted can be removed."""
    return volume.deleting and volume.status.phase != "Bound" and PROVISIONER_FINALIZER in volume.metadata.finalizers


class Growth(msgspec.Struct, frozen=True):
    """An expansion: the requested size, and whether the volume already has it."""

    size: str
    volume_done: bool


def growth(claim: PersistentVolumeClaim, volume: PersistentVolume | None, class_: StorageClass | None) -> Growth | None:
    """The expansion that a claim requests; None if there is none."""
    if volume is None or volume.spec.csi is None or volume.spec.csi.driver != DRIVER or claim.deleting:
        return None
    if claim.status.phase != "Bound" or class_ is None or not class_.allow_volume_expansion:
        return None
    wanted = asked(claim)
    has = (claim.status.capacity or {}).get("storage", "0")
    if quantity.parse(wanted) <= quantity.parse(has):
        return None
    volume_has = (volume.spec.capacity or {}).get("storage", "0")
    return Growth(wanted, quantity.parse(volume_has) >= quantity.parse(wanted))


def to_attach(attachment: VolumeAttachment) -> bool:
    return _ours(attachment) and not attachment.deleting and not attachment.status.attached


def to_detach(attachment: VolumeAttachment) -> bool:
    return _ours(attachment) and attachment.deleting and ATTACHER_FINALIZER in attachment.metadata.finalizers


def _ours(attachment: VolumeAttachment) -> bool:
    return attachment.spec.attacher == DRIVER
