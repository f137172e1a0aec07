"""EndpointSlices as they are compared, drafted and written.

upstream: staging/src/k8s.io/endpointslice/util/endpointset.go, controller_utils.go; utils.go
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, Endpoint, EndpointSlice
from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Create, Delete, Mode, Path, Stage, Update, Value, stages
from kcm_cli.planning.endpoints.ports import Ports
from kcm_cli.planning.pod_template import controller_ref

Identity = tuple[tuple[str, ...], str, str, str]
"""What makes an endpoint the same one: addresses, host name, and its target's namespace and name."""

SERVICE_INDEX = "service"


def by_service(slice_: EndpointSlice) -> tuple[str, ...]:
    """Index: by the manager and the Service that a slice names in its labels."""
    return (filed_under(slice_.labels.get(MANAGED_BY, ""), slice_.service_key),)


def filed_under(manager: str, service_key: str) -> str:
    """The value under which ``by_service`` files the slices of a Service that this manager made."""
    return f"{manager} {service_key}"


def identity(endpoint: Endpoint) -> Identity:
    target = endpoint.target_ref
    addresses = endpoint.addresses
    if len(addresses) > 1:
        addresses = tuple(sorted(addresses))
    if target is None:
        return addresses, endpoint.hostname or "", "", ""
    return addresses, endpoint.hostname or "", target.namespace, target.name


def same_beyond_identity(one: Endpoint, other: Endpoint) -> bool:
    """Whether two endpoints of one identity say the same; hints and the target's version are left aside."""
    if one is other:
        return True
    if one.node_name != other.node_name or one.zone != other.zone or one.conditions != other.conditions:
        return False
    a, b = one.target_ref, other.target_ref
    if a == b:
        return True
    if a is None or b is None:
        return False
    return msgspec.structs.replace(a, resource_version="") == msgspec.structs.replace(b, resource_version="")


class Draft(msgspec.Struct):
    """A slice on its way to being created (``existing`` is None) or updated."""

    address_type: str
    ports: Ports
    labels: dict[str, str]
    endpoints: list[Endpoint]
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    existing: EndpointSlice | None = None
    recycled: bool = False


class Efficiency(msgspec.Struct, frozen=True):
    """Endpoints of one set of ports, and the slices that they are in afterwards."""

    endpoints: int
    slices: int


class Changes(msgspec.Struct):
    """The slices to create, to update and to delete, and those that stay as they are."""

    create: list[Draft] = msgspec.field(default_factory=list)
    update: list[Draft] = msgspec.field(default_factory=list)
    delete: list[EndpointSlice] = msgspec.field(default_factory=list)
    unchanged: list[EndpointSlice] = msgspec.field(default_factory=list)

    def add(self, other: "Changes") -> None:
        """Make these changes, too."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete
        self.unchanged += other.unchanged

    def recycle(self, reusable: Iterable[EndpointSlice]) -> None:
        """Turn creations into updates of slices of the same address type that would be deleted."""
        for slice_ in reusable:
            fitting = [draft for draft in self.create if draft.address_type == slice_.address_type]
            if not fitting:
                continue
            draft = fitting[-1]
            self.create = [other for other in self.create if other is not draft]
            self.delete = [other for other in self.delete if other is not slice_]
            draft.existing, draft.recycled = slice_, True
            self.update.append(draft)


def writes_of(resource: Resource[Any], owner: Object, changes: Changes) -> tuple[Stage, ...]:
    """The writes, one after the other: creations, updates, deletions. An owner that is being deleted gets no new
    slices, which its collection would have to chase."""
    reference = controller_ref(resource, owner)
    drafts = [] if owner.deleting else changes.create
    return stages(
        Stage(tuple(creation(reference, owner.namespace, owner.name, draft) for draft in drafts), Mode.SEQUENTIAL),
        Stage(tuple(replacement(reference, draft) for draft in changes.update), Mode.SEQUENTIAL),
        Stage(tuple(deletion(slice_) for slice_ in changes.delete), Mode.SEQUENTIAL),
    )


def creation(owner: Doc, namespace: str, name: str, draft: Draft) -> Create:
    """The request that creates a slice; ``owner`` is its controlling reference, ``name`` its Service's."""
    metadata: Doc = {
        "generateName": f"{name}-",
        "namespace": namespace,
        "labels": draft.labels,
        "ownerReferences": [owner],
    }
    if draft.annotations:
        metadata["annotations"] = draft.annotations
    body: Doc = {
        "apiVersion": ENDPOINT_SLICES.api_version,
        "kind": ENDPOINT_SLICES.kind,
        "metadata": metadata,
        "addressType": draft.address_type,
        "endpoints": draft.endpoints,
        "ports": draft.ports,
    }
    return Create(ENDPOINT_SLICES, namespace, body)


def replacement(owner: Doc, draft: Draft) -> Update:
    """The request that makes an existing slice what is drafted. One that is recycled gets owner and ports, too."""
    existing = draft.existing
    if existing is None:
        raise ValueError("a draft of a new slice replaces nothing")
    changes: dict[Path, Value] = {
        ("metadata", "labels"): draft.labels,
        ("metadata", "annotations"): draft.annotations,
        ("endpoints",): draft.endpoints,
    }
    if draft.recycled:
        changes[("metadata", "ownerReferences")] = [owner]
        changes[("ports",)] = draft.ports
    return Update(ENDPOINT_SLICES, existing, changes)


def deletion(slice_: EndpointSlice) -> Delete:
    return Delete(ENDPOINT_SLICES, slice_.namespace, slice_.name, uid=slice_.uid)


def owned_by(slice_: EndpointSlice, owner: Object, kind: str) -> bool:
    """Whether the owner (a core/v1 object of this kind) is among those that the slice names."""
    refs = slice_.metadata.owner_references
    return any(ref.uid == owner.uid and ref.kind == kind and ref.api_version == "v1" for ref in refs)


def without(labels: Mapping[str, str], *keys: str) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in keys}
