"""Compares, plans and writes EndpointSlices.

upstream: staging/src/k8s.io/endpointslice/util/endpointset.go, controller_utils.go; utils.go
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, Endpoint, EndpointSlice
from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object
from kcm_cli.planning.actions import Create, Delete, Mode, Path, Plan, Stage, Update, Value, stages
from kcm_cli.planning.endpoints.ports import Ports
from kcm_cli.planning.pod_template import controller_ref

Identity = tuple[tuple[str, ...], str, str, str]
"""The identity of an endpoint: addresses, host name, and its target's namespace and name."""

SERVICE_INDEX = "service"


def by_service(slice_: EndpointSlice) -> tuple[str, ...]:
    """The index function: the manager and the Service in a slice's labels."""
    return (filed_under(slice_.labels.get(MANAGED_BY, ""), slice_.service_key),)


def filed_under(manager: str, service_key: str) -> str:
    """The index value of ``by_service`` for the slices of a Service that this manager created."""
    return f"{manager} {service_key}"


def identity(endpoint: Endpoint) -> Identity:
    """What makes an endpoint the same one in two slices: its addresses in any order, its hostname and its target."""
    target = endpoint.target_ref
    addresses = endpoint.addresses
    if len(addresses) > 1:
        addresses = tuple(sorted(addresses))
    if target is None:
        return addresses, endpoint.hostname or "", "", ""
    return addresses, endpoint.hostname or "", target.namespace, target.name


def same_beyond_identity(one: Endpoint, other: Endpoint) -> bool:
    """Whether two endpoints of one identity are equal, apart from hints and the target's version."""
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
    """A slice to create (``existing`` is None) or to update."""

    address_type: str
    ports: Ports
    labels: dict[str, str]
    endpoints: list[Endpoint]
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    existing: EndpointSlice | None = None
    recycled: bool = False


class Efficiency(msgspec.Struct, frozen=True):
    """The number of endpoints with one set of ports, and of their slices after the writes."""

    endpoints: int
    slices: int


class Changes(msgspec.Struct):
    """The slices to create, to update and to delete, and those that stay as they are."""

    create: list[Draft] = msgspec.field(default_factory=list)
    update: list[Draft] = msgspec.field(default_factory=list)
    delete: list[EndpointSlice] = msgspec.field(default_factory=list)
    unchanged: list[EndpointSlice] = msgspec.field(default_factory=list)

    def add(self, other: "Changes") -> None:
        """Add other changes to these."""
        self.create += other.create
        self.update += other.update
        self.delete += other.delete
        self.unchanged += other.unchanged

    def recycle(self, reusable: Iterable[EndpointSlice]) -> None:
        """Turn creations into updates of slices of the same address type that would be deleted."""
        new: dict[str, list[Draft]] = {}
        for draft in self.create:
            new.setdefault(draft.address_type, []).append(draft)
        reused = set()
        for slice_ in reusable:
            fitting = new.get(slice_.address_type)
            if fitting:
                draft = fitting.pop()
                draft.existing, draft.recycled = slice_, True
                reused.add(slice_.uid)
                self.update.append(draft)
        self.create = [draft for draft in self.create if not draft.recycled]
        self.delete = [slice_ for slice_ in self.delete if slice_.uid not in reused]


def writes_of(resource: Resource[Any], owner: Object, changes: Changes) -> Plan:
    """The writes in order: creations, updates, deletions. No slices are created for an owner that is being deleted."""
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
    reason = f"{len(draft.endpoints)} endpoints need a slice" if draft.endpoints else "each Service has a slice"
    return Create(ENDPOINT_SLICES, namespace, body, reason=reason)


def replacement(owner: Doc, draft: Draft) -> Update:
    """The update of an existing slice. The slice of another group of ports gets its owner and ports, too."""
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
    return Update(ENDPOINT_SLICES, existing, changes, reason="endpoints changed")


def deletion(slice_: EndpointSlice) -> Delete:
    return Delete(
        ENDPOINT_SLICES, slice_.namespace, slice_.name, uid=slice_.uid, reason="no endpoints are left in the slice"
    )


def owned_by(slice_: EndpointSlice, owner: Object, kind: str) -> bool:
    """Whether the slice has an owner reference to this core/v1 object."""
    refs = slice_.metadata.owner_references
    return any(ref.uid == owner.uid and ref.kind == kind and ref.api_version == "v1" for ref in refs)


def without(labels: Mapping[str, str], *keys: str) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key not in keys}
