"""Which children a controller keeps, adopts and releases.

upstream: pkg/controller/controller_ref_manager.go#ClaimObject
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.kref import kobj
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import NO_LABELS, Object, controller_of
from kcm_cli.planning.actions import Patch, Remark
from kcm_cli.planning.pod_template import controller_ref

T = TypeVar("T", bound=Object)


class Claims(msgspec.Struct, Generic[T], frozen=True):
    """The decision: ``kept`` children need no write; those in ``adopt`` and ``release`` need one each."""

    kept: tuple[T, ...]
    adopt: tuple[T, ...]
    release: tuple[T, ...]


def decide(
    owner: Object, selector: Selector, candidates: Iterable[T], *, member: Callable[[T], bool] | None = None
) -> Claims[T]:
    """Decide for each candidate. An owner that is being deleted neither adopts nor releases, but keeps what matches.

    ``member``: a condition besides the selector.
    """
    kept: list[T] = []
    adopt: list[T] = []
    release: list[T] = []
    uid, selects = owner.uid, selector.matches
    for obj in candidates:
        meta = obj.metadata
        refs = meta.owner_references
        ref = refs[0] if refs and refs[0].controller else controller_of(obj)  # mostly without a call
        if ref is not None and ref.uid != uid:
            continue
        matches = selects(meta.labels or NO_LABELS) and (member is None or member(obj))
        if ref is not None:
            if matches:
                kept.append(obj)
            elif not owner.deleting:
                release.append(obj)
        elif matches and not owner.deleting and not obj.deleting and obj.namespace == owner.namespace:
            adopt.append(obj)
    return Claims(tuple(kept), tuple(adopt), tuple(release))


def adopt_action(
    resource: Resource[Any],
    owner: Object,
    child: Resource[Any],
    obj: Object,
    finalizers: tuple[str, ...] = (),
) -> Patch:
    """Set the owner as the controller. It fails if the object was recreated (uid) or has another controller."""
    metadata: Doc = {"uid": obj.uid, "ownerReferences": [controller_ref(resource, owner)]}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return Patch(child, obj.namespace, obj.name, {"metadata": metadata}, reason="adopted: the selector matches it")


def release_action(owner: Object, child: Resource[Any], obj: Object, finalizers: tuple[str, ...] = ()) -> Patch:
    """Remove the owner's reference. With finalizers it fails if the object has changed, since they may be those of
    another owner by now."""
    reference: Doc = {"$patch": "delete", "uid": owner.uid}
    metadata: Doc = {"uid": obj.uid, "ownerReferences": [reference]}
    if finalizers:
        metadata["resourceVersion"] = obj.metadata.resource_version
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    reason = "released: the selector does not match it"
    return Patch(child, obj.namespace, obj.name, {"metadata": metadata}, reason=reason)


_RELEASES = {
    "Pod": ("Patching pod to remove its controllerRef", "pod"),
    "ReplicaSet": ("Patching ReplicaSet to remove its controllerRef", "replicaSet"),
    "ControllerRevision": ("Patching ControllerRevision to remove its controllerRef", "controllerRevision"),
}
_RELEASE = ("Patching object to remove its controllerRef", "object")


def release_remark(resource: Resource[Any], owner: Object, child: Resource[Any], obj: Object) -> Remark:
    """What upstream logs about a release."""
    message, key = _RELEASES.get(child.kind, _RELEASE)
    fields: dict[str, object] = {key: kobj(obj)}
    fields |= {"gvk": f"{resource.api_version}, Kind={resource.kind}", "controller": owner.name}
    return Remark(message, fields)
