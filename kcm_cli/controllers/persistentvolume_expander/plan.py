"""The writes to a claim that requests more than its capacity, and to its volume.

External resizers of CSI drivers expand the volumes. FlexVolume volumes are expanded by their nodes alone, so that only
the request is written here: the claim gets the condition Resizing and the new size, the volume gets the new capacity,
and the claim then waits for the node to expand the file system. Each write is decided from the present objects, so that
an interrupted expansion is continued.

recovers (gate RecoverVolumeExpansionFailure): the claim also gets the allocated size and the state of the expansion, so
that one that cannot succeed can be cancelled. Without it, the volume is expanded to the requested size.

upstream: pkg/controller/volume/expand/expand_controller.go, pkg/volume/util/resize_util.go,
pkg/volume/util/operationexecutor/operation_generator.go#expandAndRecoverFunction, #GenerateExpandVolumeFunc
"""

from datetime import datetime
from enum import Enum

import msgspec

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kcm_cli.api.storage import PERSISTENT_VOLUMES, PersistentVolume
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.machinery.times import format_time
from kcm_cli.planning.actions import Notice, Patch, ref_to
from kcm_cli.planning.volumes.matching import requested
from kcm_cli.planning.volumes.migration import DRIVERS, migrated_plugin
from kcm_cli.planning.volumes.names import PRE_RESIZE_CAPACITY

SOURCE = "volume_expand"
RESIZER = "volume.kubernetes.io/storage-resizer"
_ZERO = quantity.make(0)


class NotBound(SyncError):
    """The volume of a claim is not bound to it."""


def capacity(claim: PersistentVolumeClaim) -> Quantity:
    """The capacity of a claim."""
    return _storage(claim.status.capacity)


def has_grown(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
    """Whether a claim's request or capacity has grown."""
    return requested(new) > requested(old) or capacity(new) > capacity(old)


def must_grow(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether a claim's volume is to be expanded, or its expansion has begun. Raises NotBound."""
    if not _are_bound(claim, volume):
        raise NotBound(f"persistent Volume is not bound to PVC being updated : {claim.key}")
    return requested(claim) > capacity(claim) or PRE_RESIZE_CAPACITY in volume.annotations


def is_settled(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether both are bound to each other, and nothing is to be expanded."""
    return _are_bound(claim, volume) and not must_grow(claim, volume)


def _are_bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    ref = volume.spec.claim_ref
    return ref is not None and ref.namespace == claim.namespace and ref.uid == claim.uid


def waiting(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Notice:
    """The Event that names the component which expands the volume."""
    plugin = migrated_plugin(volume)
    text = "waiting for an external controller to expand this PVC"
    if plugin:
        text = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    return Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), "Normal", "ExternalExpanding", text)


def plan_resizer(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Patch | None:
    """A patch with the resizer of a volume that was migrated to a CSI driver; None if it is set already or not
    needed."""
    plugin = migrated_plugin(volume)
    if not plugin or claim.annotations.get(RESIZER) == DRIVERS[plugin]:
        return None
    version = claim.metadata.resource_version
    body: Doc = {"metadata": {"annotations": {RESIZER: DRIVERS[plugin]}, "resourceVersion": version, "uid": claim.uid}}
    reason = "the driver's resizer expands it"
    return Patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, body, subresource="status", reason=reason)


def not_named(claim: PersistentVolumeClaim, error: Exception) -> Notice:
    """The Event about a failed write of the resizer."""
    text = f"error setting resizer annotation to pvc {claim.key}, with error {error}"
    return Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), "Warning", "ExternalExpanding", text)


def _storage(amounts: dict[str, str] | None) -> Quantity:
    text = (amounts or {}).get("storage")
    return quantity.parse(text) if text else _ZERO


# -- volumes of FlexVolume drivers

RESIZING, PENDING = "Resizing", "FileSystemResizePending"
ALL_CONDITIONS = (RESIZING, PENDING, "ControllerResizeError", "NodeResizeError")
IN_PROGRESS, INFEASIBLE = "ControllerResizeInProgress", "ControllerResizeInfeasible"
NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE = "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"
_UNDER_WAY = frozenset({IN_PROGRESS, NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE})
_WAITS = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


class Step(Enum):
    """The next write to the claim: none while the node is working, the request to the node, or all steps."""

    NOTHING = "nothing"
    NODE = "node"
    ALL = "all"


class Growth(msgspec.Struct, frozen=True):
    """The next step. ``size``: the new capacity of the volume, as a quantity."""

    step: Step
    size: str


def plan_growth(claim: PersistentVolumeClaim, volume: PersistentVolume, *, recovers: bool = True) -> Growth:
    """The next step for a claim that is to be expanded. An expansion that has begun is completed before a new size is
    considered."""
    if not recovers:
        return Growth(Step.ALL, str(requested(claim)))
    state = (claim.status.allocated_resource_statuses or {}).get("storage", "")
    allocated = (claim.status.allocated_resources or {}).get("storage")
    wanted = str(requested(claim))
    if quantity.parse(_size(volume)) < requested(claim):
        return Growth(Step.ALL, allocated or wanted if state in _UNDER_WAY else wanted)
    if state in (NODE_PENDING, NODE_IN_PROGRESS):
        return Growth(Step.NOTHING, wanted)
    if state == NODE_INFEASIBLE:
        return Growth(Step.NODE, wanted)
    return Growth(Step.ALL, allocated or wanted if state in (IN_PROGRESS, INFEASIBLE, "") else wanted)


def is_complete(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    """Whether the node has expanded the file system."""
    has = capacity(claim)
    return has >= requested(claim) and has >= quantity.parse(_size(volume))


# -- what is written


def started(claim: PersistentVolumeClaim, driver: str, size: str, now: datetime, *, recovers: bool = True) -> Patch:
    """A patch that marks the claim as resizing."""
    status: Doc = {}
    if recovers:
        status = {"allocatedResources": {"storage": size}, "allocatedResourceStatuses": {"storage": IN_PROGRESS}}
    return _claim(claim, {**status, **_conditions(claim, RESIZING, now)}, {RESIZER: driver})


def resized(volume: PersistentVolume, size: str, *, recovers: bool = True) -> Patch | None:
    """A patch with the volume's new capacity; None if it has that already, or a larger one that cannot be cancelled."""
    known, wanted = quantity.parse(_size(volume)), quantity.parse(size)
    if known == wanted or (known > wanted and not recovers):
        return None
    return _volume(volume, {"spec": {"capacity": {"storage": size}}})


def waiting_for_node(claim: PersistentVolumeClaim, now: datetime, *, recovers: bool = True) -> Patch:
    """A patch that marks the claim as waiting for the node to expand the file system."""
    status: Doc = {"allocatedResourceStatuses": {"storage": NODE_PENDING}} if recovers else {}
    return _claim(claim, {**status, **_conditions(claim, PENDING, now, message=_WAITS, keep=True)})


def finished(claim: PersistentVolumeClaim, size: str, *, recovers: bool = True) -> Patch:
    """A patch with the claim's new capacity, for a volume without a file system."""
    removed: list[object] = [
        {"type": one.type, "$patch": "delete"} for one in claim.status.conditions if _is_ours(one.type)
    ]
    status: Doc = {"capacity": {"storage": size}}
    if recovers:
        status["allocatedResourceStatuses"] = {"storage": None}
    return _claim(claim, {**status, "conditions": removed} if removed else status)


def remembered(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Patch | None:
    """A patch that stores the claim's capacity in the volume, in case the claim is deleted; None if it is stored
    already."""
    if PRE_RESIZE_CAPACITY in volume.annotations:
        return None
    return _volume(volume, {"metadata": {"annotations": {PRE_RESIZE_CAPACITY: str(capacity(claim))}}})


def forgotten(volume: PersistentVolume) -> Patch:
    """A patch that removes the stored capacity from the volume."""
    return _volume(volume, {"metadata": {"annotations": {PRE_RESIZE_CAPACITY: None}}})


def succeeded(claim: PersistentVolumeClaim) -> Notice:
    text = f"ExpandVolume succeeded for volume {claim.key}"
    return Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), "Normal", "VolumeResizeSuccessful", text)


def failed(claim: PersistentVolumeClaim, text: str) -> Notice:
    return Notice(ref_to(PERSISTENT_VOLUME_CLAIMS, claim), "Warning", "VolumeResizeFailed", text)


def _size(volume: PersistentVolume) -> str:
    return (volume.spec.capacity or {}).get("storage", "0")


def _is_ours(type_: str) -> bool:
    return type_ in ALL_CONDITIONS


def _conditions(
    claim: PersistentVolumeClaim, type_: str, now: datetime, *, message: str = "", keep: bool = False
) -> Doc:
    """The conditions with a true one appended. Other conditions about resizing are removed, unless ``keep``."""
    known = {one.type: one.status for one in claim.status.conditions}
    removed = [] if keep else [other for other in known if _is_ours(other) and other != type_]
    changes: list[object] = [{"type": other, "$patch": "delete"} for other in removed]
    if known.get(type_) != "True":
        new: Doc = {"type": type_, "status": "True", "lastProbeTime": None, "lastTransitionTime": format_time(now)}
        changes.append({**new, "message": message} if message else new)
    if not changes:
        return {}
    order = [{"type": one} for one in dict.fromkeys([*known, type_]) if one not in removed]
    return {"conditions": changes, "$setElementOrder/conditions": order}


def _claim(claim: PersistentVolumeClaim, status: Doc, annotations: Doc | None = None) -> Patch:
    metadata: Doc = {"resourceVersion": claim.metadata.resource_version, "uid": claim.uid}
    if annotations:
        metadata["annotations"] = annotations
    body: Doc = {"metadata": metadata, "status": status}
    reason = "claim is expanded"
    return Patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, body, subresource="status", reason=reason)


def _volume(volume: PersistentVolume, change: Doc) -> Patch:
    body: Doc = {**change, "metadata": {**nested_map(change, "metadata"), "uid": volume.uid}}
    return Patch(PERSISTENT_VOLUMES, "", volume.name, body, reason="claim is expanded")
