"""Decides which Endpoints are mirrored, and which slices to create, update and delete: one per address type and ports.

upstream: pkg/controller/endpointslicemirroring/reconciler.go, reconciler_helpers.go#desiredCalc, utils.go
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kcm_cli.api.discovery import (
    IPV4,
    IPV6,
    MANAGED_BY,
    SERVICE_NAME,
    SKIP_MIRROR,
    Endpoint,
    EndpointConditions,
    EndpointSlice,
    SlicePort,
)
from kcm_cli.api.endpoints import ENDPOINTS, EndpointAddress, Endpoints, EndpointSubset
from kcm_cli.api.well_known import LAST_APPLIED, LEADER
from kcm_cli.machinery.kref import kobj
from kcm_cli.planning.actions import Notice, Plan, Remark, Stage, ref_to, stages
from kcm_cli.planning.endpoints.addresses import parse
from kcm_cli.planning.endpoints.ports import Ports, ordered_slice_ports
from kcm_cli.planning.endpoints.slices import (
    Changes,
    Draft,
    Efficiency,
    Identity,
    deletion,
    identity,
    same_beyond_identity,
    without,
    writes_of,
)
from kcm_cli.planning.endpoints.subsets import repack
from kcm_cli.planning.endpoints.trigger_time import ANNOTATION as TRIGGER_TIME

_NOT_MIRRORED = "Address in Endpoints is not a valid IP, it will not be mirrored to an EndpointSlice"
_SKIPPED = "Addresses in Endpoints were skipped due to exceeding MaxEndpointsPerSubset"
MANAGER = "endpointslicemirroring-controller.k8s.io"


class Snapshot(msgspec.Struct, frozen=True):
    """Endpoints that another client wrote, and the slices that mirror them."""

    endpoints: Endpoints
    slices: tuple[EndpointSlice, ...]
    max_per_subset: int


def mirrorable(endpoints: Endpoints) -> bool:
    """Whether Endpoints may be mirrored: they do not opt out, and have no leader election record."""
    return endpoints.labels.get(SKIP_MIRROR) != "true" and LEADER not in endpoints.annotations


def slice_labels(endpoints: Endpoints) -> dict[str, str]:
    """The desired labels of the slices."""
    return {**endpoints.labels, SERVICE_NAME: endpoints.name, MANAGED_BY: MANAGER}


def slice_annotations(endpoints: Endpoints) -> dict[str, str]:
    """The desired annotations of the slices."""
    return without(endpoints.annotations, TRIGGER_TIME, LAST_APPLIED)


_NAMED = 5
_READY, _UNREADY = EndpointConditions(True), EndpointConditions(False)

GroupKey = tuple[str, Ports]
Group = dict[Identity, Endpoint]


class Desired(msgspec.Struct):
    """Endpoints by address type and ports (groups may be empty), and the numbers of invalid addresses and of all
    skipped ones."""

    groups: dict[GroupKey, Group] = msgspec.field(default_factory=dict)
    invalid: int = 0
    skipped: int = 0
    unusable: list[str] = msgspec.field(default_factory=list)
    """Some of the invalid addresses, for logs."""


def desired(endpoints: Endpoints, limit: int) -> Desired:
    """The endpoints to mirror: the repacked subsets up to the limit, ready addresses first."""
    result = Desired()
    for subset in repack(endpoints.subsets, versions=True):
        _add(result, subset, limit)
    return result


def _add(result: Desired, subset: EndpointSubset, limit: int) -> None:
    ports = _ports(subset)
    groups = {type_: result.groups.setdefault((type_, ports), {}) for type_ in (IPV4, IPV6)}
    addresses = [(address, _READY) for address in subset.addresses]
    addresses += [(address, _UNREADY) for address in subset.not_ready_addresses]
    added = 0
    for address, conditions in addresses:
        if added >= limit:
            break
        parsed = parse(address.ip)
        if parsed is None:
            result.invalid += 1
            if len(result.unusable) < _NAMED:
                result.unusable.append(address.ip)
            continue
        endpoint = _endpoint(address, parsed.text, conditions)
        groups[parsed.type][identity(endpoint)] = endpoint
        added += 1
    result.skipped += len(addresses) - added


def _endpoint(address: EndpointAddress, text: str, conditions: EndpointConditions) -> Endpoint:
    return Endpoint((text,), conditions, address.hostname or None, address.target_ref, address.node_name)


def _ports(subset: EndpointSubset) -> Ports:
    ports = tuple(SlicePort(port.name, port.protocol, port.port, port.app_protocol) for port in subset.ports)
    return ordered_slice_ports(ports)


class Mirroring(msgspec.Struct, frozen=True):
    """The writes, the slices that stay, the Events, and the numbers of added, updated, removed and skipped endpoints.
    ``efficiency``: for each group its endpoints, and its slices after the writes."""

    stages: Plan
    unchanged: tuple[EndpointSlice, ...]
    notices: tuple[Notice, ...]
    remarks: tuple[Remark, ...]
    added: int
    updated: int
    removed: int
    skipped: int
    efficiency: tuple[Efficiency, ...]


Counts = tuple[int, int, int]
"""The numbers of added, updated and removed endpoints."""


def plan(snapshot: Snapshot) -> Mirroring:
    """Decide about all slices of one Endpoints object."""
    wanted = desired(snapshot.endpoints, snapshot.max_per_subset)
    existing: dict[GroupKey, list[EndpointSlice]] = {}
    for slice_ in sorted(snapshot.slices, key=lambda slice_: slice_.name):
        key = slice_.address_type, ordered_slice_ports(slice_.ports)
        existing.setdefault(key, []).append(slice_)
    changes, groups = Changes(), sorted(wanted.groups.items(), key=lambda item: str(item[0]))
    counts = [_mirror(changes, snapshot, key, group, existing.pop(key, [])) for key, group in groups]
    for slices in existing.values():
        changes.delete += slices
    changes.recycle(tuple(changes.delete))
    return Mirroring(
        writes_of(ENDPOINTS, snapshot.endpoints, changes),
        tuple(changes.unchanged),
        _notices(snapshot, wanted),
        tuple(_remarks(snapshot, wanted)),
        sum(added for added, _, _ in counts),
        sum(updated for _, updated, _ in counts),
        sum(removed for _, _, removed in counts),
        wanted.skipped,
        tuple(Efficiency(len(group), 1 if group else 0) for _, group in groups),
    )


def _mirror(
    changes: Changes, snapshot: Snapshot, key: GroupKey, group: Group, slices: Sequence[EndpointSlice]
) -> Counts:
    """Add the changes of one group: its first slice gets all endpoints, its other slices are deleted."""
    if not group:
        changes.delete += slices
        return 0, 0, sum(len(slice_.members) for slice_ in slices)
    first = slices[0] if slices else None
    changes.delete += slices[1:]
    counts = (len(group), 0, 0) if first is None else _differences(first, group)
    if first is not None and not any(counts) and _has_right_metadata(first, snapshot.endpoints):
        changes.unchanged.append(first)
        return counts
    endpoints = [group[key] for key in sorted(group)][: snapshot.max_per_subset]
    address_type, ports = key
    draft = Draft(
        address_type,
        ports,
        slice_labels(snapshot.endpoints),
        endpoints,
        slice_annotations(snapshot.endpoints),
        first,
        recycled=first is not None,
    )
    (changes.create if first is None else changes.update).append(draft)
    return counts


def _differences(slice_: EndpointSlice, group: Group) -> Counts:
    found = [(endpoint, group.get(identity(endpoint))) for endpoint in slice_.members]
    removed = sum(wanted is None for _, wanted in found)
    updated = sum(wanted is not None and not same_beyond_identity(wanted, endpoint) for endpoint, wanted in found)
    return len(group) - (len(found) - removed), updated, removed


def _has_right_metadata(slice_: EndpointSlice, endpoints: Endpoints) -> bool:
    """Whether the slice's labels and annotations are right. False for a slice of earlier Endpoints of this name, which
    is recreated."""
    for ref in slice_.metadata.owner_references:
        if ref.kind == ENDPOINTS.kind and ref.name == endpoints.name and ref.uid != endpoints.uid:
            return False
    bare, wanted = (without(labels, MANAGED_BY, SERVICE_NAME) for labels in (slice_.labels, endpoints.labels))
    return bare == wanted and slice_.annotations == slice_annotations(endpoints)


def _remarks(snapshot: Snapshot, wanted: Desired) -> Iterator[Remark]:
    endpoints = kobj(snapshot.endpoints)
    for text in wanted.unusable:
        yield Remark(_NOT_MIRRORED, {"endpoints": endpoints, "IP": text}, 0)
    if wanted.skipped:
        yield Remark(_SKIPPED, {"skippedAddresses": wanted.skipped, "endpoints": endpoints}, 0)


def _notices(snapshot: Snapshot, wanted: Desired) -> tuple[Notice, ...]:
    ref = ref_to(ENDPOINTS, snapshot.endpoints)
    notices = []
    if wanted.invalid:
        text = f"Skipped {wanted.invalid} invalid IP addresses when mirroring to EndpointSlices"
        notices.append(Notice(ref, "Warning", "InvalidIPAddress", text))
    if wanted.skipped > wanted.invalid:
        text = (
            f"A max of {snapshot.max_per_subset} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{wanted.skipped} addresses were skipped"
        )
        notices.append(Notice(ref, "Warning", "TooManyAddressesToMirror", text))
    return tuple(notices)


def removal(slices: Iterable[EndpointSlice]) -> Plan:
    """A stage that deletes all slices, even if some deletions fail."""
    return stages(Stage(tuple(deletion(slice_) for slice_ in slices)))
