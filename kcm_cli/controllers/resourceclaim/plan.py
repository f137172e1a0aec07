"""Decides which claims pods and PodGroups need, when claims are deallocated, and what is created from a template.

upstream: pkg/controller/resourceclaim/controller.go
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from kcm_cli.api.core import Pod, PodResourceClaim
from kcm_cli.api.devices import DeviceRequest, ResourceClaim, ResourceClaimTemplate, spec_of
from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.api.scheduling import PodGroup
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, OwnerReference
from kcm_cli.planning.actions import ABSENT, Apply, Path, Value
from kcm_cli.planning.pods import is_terminal
from kcm_cli.planning.resource_claims import (
    FINALIZER,
    POD_CLAIM,
    NotCreated,
    NotNeeded,
    Reference,
    Unsupported,
    group_key,
    is_reserved_for,
    named,
    not_for,
    shares,
    used,
    users_of,
)
from kcm_cli.planning.status import applied_status

T = TypeVar("T", covariant=True)
MANAGER = "ResourceClaimController"
OWNER = "controller"
"""Index of claims by the uid of the object that controls them."""
CREATE = ""
"""In place of a name: the claim has to be created."""
RESERVED: Path = ("status", "reservedFor")
_ALLOCATION: Path = ("status", "allocation")
_BASE_MAX = 57
"""Leaves room for a hyphen and five random characters in a name of 63."""


class Lister(Protocol[T]):
    """The methods of a cache that are used here."""

    def get(self, key: str) -> T | None: ...
    def by_index(self, index: str, value: str) -> Sequence[T]: ...
    def is_unseen(self, key: str) -> bool: ...
    def unknown_of(self, owner: Object) -> Sequence[Undecodable]: ...


class Caches(msgspec.Struct, frozen=True):
    """The caches. ``pod_groups``: None if they are not watched (gate DRAWorkloadResourceClaims)."""

    claims: Lister[ResourceClaim]
    pod_groups: Lister[PodGroup] | None

    @property
    def groups(self) -> bool:
        return self.pod_groups is not None

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self.claims.get(f"{namespace}/{name}")

    def is_unseen(self, namespace: str, name: str) -> bool:
        """Whether a claim exists that could never be decoded. It must not be created again."""
        return self.claims.is_unseen(f"{namespace}/{name}")

    def made_for(self, owner: Pod | PodGroup, entry: str) -> str:
        """The name of the claim that was created for an entry in its owner's list, also if it cannot be decoded; empty
        if there is none. One of another namespace was not, whatever uid its reference has."""
        owned = (claim.metadata for claim in self.claims.by_index(OWNER, owner.uid))
        known = (one for one in owned if one.namespace == owner.namespace)
        unknown = (one.metadata for one in self.claims.unknown_of(owner))
        return next((one.name for one in (*known, *unknown) if (one.annotations or {}).get(POD_CLAIM) == entry), "")

    def group(self, pod: Pod) -> PodGroup | None:
        """The PodGroup of a pod, if the cache has it."""
        return self.pod_groups.get(group_key(pod)) if self.pod_groups is not None else None


def is_done(pod: Pod) -> bool:
    """Whether no container of the pod runs, or ever will."""
    return is_terminal(pod) or (pod.deleting and not pod.spec.node_name)


def claims_of(pod: Pod) -> Iterator[str]:
    """The keys of a pod's claims, including the one for extended resources."""
    return (f"{pod.namespace}/{found.name}" for found in used(pod))


def template_keys(user: Pod | PodGroup) -> tuple[str, ...]:
    """The index function: the keys of the templates that a pod or PodGroup names."""
    names = {entry.resource_claim_template_name for entry in user.spec.resource_claims}
    return tuple(f"{user.namespace}/{name}" for name in names if name is not None)


def needs_work(user: Pod | PodGroup, caches: Caches) -> bool:
    """Whether a claim has to be created, recorded or reserved.

    False for a pod that has ended. Upstream creates and reserves claims for it, and frees them at once, repeatedly.
    """
    if user.deleting or (isinstance(user, Pod) and is_done(user)):
        return False
    return any(_entry_needs_work(user, entry, caches) for entry in user.spec.resource_claims)


def _entry_needs_work(user: Pod | PodGroup, entry: PodResourceClaim, caches: Caches) -> bool:
    try:
        found = named(user, entry)
    except Unsupported:
        return True
    match found:
        case NotCreated():
            return True
        case NotNeeded():
            return False
        case Reference(name):
            claim = caches.claim(user.namespace, name)
            if claim is None:
                generated = entry.resource_claim_template_name is not None and not _is_the_groups(user, entry, caches)
                return generated and not caches.is_unseen(user.namespace, name)
            if not_owned(user, found, claim, groups=caches.groups):
                return False
            return isinstance(user, Pod) and to_reserve(user, claim, groups=caches.groups)


def _is_the_groups(user: Pod | PodGroup, entry: PodResourceClaim, caches: Caches) -> bool:
    return isinstance(user, Pod) and shares(user, caches.group(user), entry)


def not_owned(user: Pod | PodGroup, found: Reference, claim: ResourceClaim, *, groups: bool) -> str:
    """The error if the claim that is recorded for a template belongs to another owner; empty otherwise."""
    return not_for(user, claim, groups=groups) if found.generated else ""


def to_reserve(pod: Pod, claim: ResourceClaim, *, groups: bool) -> bool:
    """Whether a claim has to be reserved for a pod that was bound without the scheduler."""
    allocated = claim.status.allocation is not None
    return bool(pod.spec.node_name) and allocated and not is_reserved_for(pod, claim.status.reserved_for, groups=groups)


def plan_entry(user: Pod | PodGroup, group: PodGroup | None, entry: PodResourceClaim, caches: Caches) -> str | None:
    """The name of the claim to record for an entry, or ``CREATE``; None if nothing has to be recorded.

    A deleted claim is created again. ``group``: the pod's PodGroup. Raises Unsupported.
    """
    found = named(user, entry)
    if isinstance(found, NotNeeded) or entry.resource_claim_template_name is None:
        return None
    if isinstance(found, Reference):
        claim = caches.claim(user.namespace, found.name)
        if caches.is_unseen(user.namespace, found.name):
            return None
        if claim is not None and not not_owned(user, found, claim, groups=caches.groups):
            return None
    if group is not None and isinstance(user, Pod) and shares(user, group, entry):
        return caches.made_for(group, entry.name) or None  # created when the group is synced
    return caches.made_for(user, entry.name) or CREATE


def plan_claim(claim: ResourceClaim, remaining: Collection[str]) -> Mapping[Path, Value]:
    """The changes of a claim's status. ``remaining``: the uids of the consumers that still use it.

    The allocation is removed with the last reservation only, since a driver may allocate before it reserves.
    """
    held = FINALIZER in claim.metadata.finalizers
    if len(remaining) == len(claim.status.reserved_for):
        unused = claim.deleting and not remaining and held and claim.status.allocation is not None
        return {_ALLOCATION: ABSENT} if unused else {}
    users = [user for user in users_of(claim) if user.get("uid") in remaining]
    changes: dict[Path, Value] = {RESERVED: users or ABSENT}
    if held and not users:
        changes[_ALLOCATION] = ABSENT
    return changes


def recorded(user: Pod | PodGroup) -> dict[str, str | None]:
    """The names of claims by entry; None for an entry that needs no claim."""
    return {status.name: status.resource_claim_name for status in user.status.resource_claim_statuses}


def status(resource: Resource[Any], user: Pod | PodGroup, new: dict[str, str]) -> Apply:
    """The status with new claims. It has all entries, since an apply removes those that it lacks."""
    known = recorded(user)
    found: list[Doc] = []
    for entry in user.spec.resource_claims:
        name = new.get(entry.name, known.get(entry.name))
        if name is not None:
            found.append({"name": entry.name, "resourceClaimName": name})
        elif entry.name in known:
            found.append({"name": entry.name})
    return applied_status(resource, user, {"resourceClaimStatuses": found}, MANAGER)


def claim_from(template: ResourceClaimTemplate, resource: Resource[Any], owner: Pod | PodGroup, entry: str) -> bytes:
    """The body of the claim for an entry of its owner. The API server generates its name.

    The spec has the template's bytes, since opaque parameters are kept and compared as bytes.
    """
    meta = template.spec.metadata
    ref = {"apiVersion": resource.api_version, "kind": resource.kind, "name": owner.name, "uid": owner.uid}
    metadata: Doc = {
        "generateName": generated_name(owner.name, entry),
        "annotations": {**(meta.annotations or {}), POD_CLAIM: entry},
        "ownerReferences": [{**ref, "controller": True}],
    }
    if meta.labels:
        metadata["labels"] = meta.labels
    return codec.encode({"metadata": metadata, "spec": spec_of(template)})


def generated_name(owner: str, entry: str) -> str:
    """The generateName of a claim. If it is too long, both parts are cut in proportion."""
    whole = f"{owner}-{entry}-"
    if len(whole) <= _BASE_MAX:
        return whole
    return f"{owner[: len(owner) * _BASE_MAX // len(whole)]}-{entry[: len(entry) * _BASE_MAX // len(whole)]}"


def has_admin_access(requests: tuple[DeviceRequest, ...]) -> bool:
    """Whether a request has adminAccess, which grants devices that are in use."""
    return any(request.exactly is not None and request.exactly.admin_access for request in requests)


def has_alternatives(requests: tuple[DeviceRequest, ...]) -> bool:
    return any(request.first_available for request in requests)


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was created for."""
    refs = claim.metadata.owner_references
    return next((ref for ref in refs if ref.controller and (ref.api_version, ref.kind) == ("v1", "Pod")), None)
