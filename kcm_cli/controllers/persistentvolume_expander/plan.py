"""What is written to a claim that asks for more than it has, and to its volume.

Volumes are grown by the resizers of their CSI drivers, except those of FlexVolume drivers: their nodes alone grow them,
so that here it is only noted what they are to do. The claim says that it grows and to what, the volume gets its new
size, and the claim waits for the node to grow the file system. Each write is decided from the objects as they are: what
was begun before and broke off goes on.

``recovers`` (gate RecoverVolumeExpansionFailure): the claim also says to what size it grows and how far that is, so
that a growth that cannot be done can be given up. Without it, it grows to what it asks for.

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
from kcm_cli.planning.csi_migration import DRIVERS, migrated_plugin
from kcm_cli.planning.volumes.matching import requested
from kcm_cli.planning.volumes.names import PRE_RESIZE_CAPACITY

SOURCE = "volume_expand"
RESIZER = "volume.kubernetes.io/storage-resizer"
_ZERO = quantity.make(0)


class NotBound(SyncError):
    """The volume of a claim is bound to another one."""


def capacity(claim: PersistentVolumeClaim) -> Quantity:
    """The size that a claim has."""
    return _storage(claim.status.capacity)


def has_grown(old: PersistentVolumeClaim, new: PersistentVolumeClaim) -> bool:
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


def plan_resizer(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Patch | None:
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


# -- volumes of FlexVolume drivers

RESIZING, PENDING = "Resizing", "FileSystemResizePending"
ALL_CONDITIONS = (RESIZING, PENDING, "ControllerResizeError", "NodeResizeError")
IN_PROGRESS, INFEASIBLE = "ControllerResizeInProgress", "ControllerResizeInfeasible"
NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE = "NodeResizePending", "NodeResizeInProgress", "NodeResizeInfeasible"
_UNDER_WAY = frozenset({IN_PROGRESS, NODE_PENDING, NODE_IN_PROGRESS, NODE_INFEASIBLE})
_WAITS = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


class Step(Enum):
    """What is written to the claim: nothing while the node works on it, the request to the node, or all."""

    NOTHING = "nothing"
    NODE = "node"
    ALL = "all"


class Growth(msgspec.Struct, frozen=True):
    """``size``: what the volume is to have, as a quantity."""

    step: Step
    size: str


def plan_growth(claim: PersistentVolumeClaim, volume: PersistentVolume, *, recovers: bool = True) -> Growth:
    """What there is to do for a claim that is to grow; what has been begun is ended before a new size is looked at."""
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
    """Whether the node has done its part."""
    has = capacity(claim)
    return has >= requested(claim) and has >= quantity.parse(_size(volume))


# -- what is written


def started(claim: PersistentVolumeClaim, driver: str, size: str, now: datetime, *, recovers: bool = True) -> Patch:
    """The claim says that it grows."""
    status: Doc = {}
    if recovers:
        status = {"allocatedResources": {"storage": size}, "allocatedResourceStatuses": {"storage": IN_PROGRESS}}
    return _claim(claim, {**status, **_conditions(claim, RESIZING, now)}, {RESIZER: driver})


def resized(volume: PersistentVolume, size: str, *, recovers: bool = True) -> Patch | None:
    """The volume says how big it is; None where it does already, or is bigger and nothing is given up."""
    known, wanted = quantity.parse(_size(volume)), quantity.parse(size)
    if known == wanted or (known > wanted and not recovers):
        return None
    return _volume(volume, {"spec": {"capacity": {"storage": size}}})


def waiting_for_node(claim: PersistentVolumeClaim, now: datetime, *, recovers: bool = True) -> Patch:
    """The claim waits for a node to grow the file system."""
    status: Doc = {"allocatedResourceStatuses": {"storage": NODE_PENDING}} if recovers else {}
    return _claim(claim, {**status, **_conditions(claim, PENDING, now, message=_WAITS, keep=True)})


def finished(claim: PersistentVolumeClaim, size: str, *, recovers: bool = True) -> Patch:
    """The claim has grown: there is no file system."""
    removed: list[object] = [
        {"type": one.type, "$patch": "delete"} for one in claim.status.conditions if _is_ours(one.type)
    ]
    status: Doc = {"capacity": {"storage": size}}
    if recovers:
        status["allocatedResourceStatuses"] = {"storage": None}
    return _claim(claim, {**status, "conditions": removed} if removed else status)


def remembered(claim: PersistentVolumeClaim, volume: PersistentVolume) -> Patch | None:
    """The volume remembers how big the claim was, should that be deleted meanwhile; None where it does already."""
    if PRE_RESIZE_CAPACITY in volume.annotations:
        return None
    return _volume(volume, {"metadata": {"annotations": {PRE_RESIZE_CAPACITY: str(capacity(claim))}}})


def forgotten(volume: PersistentVolume) -> Patch:
    """The volume need not remember that any more."""
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
    """A condition that holds from now on, as the last one; unless they are kept, the others about growing go."""
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
    return Patch(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, body, subresource="status")


def _volume(volume: PersistentVolume, change: Doc) -> Patch:
    body: Doc = {**change, "metadata": {**nested_map(change, "metadata"), "uid": volume.uid}}
    return Patch(PERSISTENT_VOLUMES, "", volume.name, body)
