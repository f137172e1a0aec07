"""Which mirrored slices are created, updated and deleted: one for each address type and set of ports.

upstream: pkg/controller/endpointslicemirroring/reconciler.go
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.controllers.endpointslice_mirroring.plan import names
from kcm_cli.controllers.endpointslice_mirroring.plan.desired import Desired, Group, GroupKey, desired
from kcm_cli.controllers.endpointslice_mirroring.snapshot import Snapshot
from kcm_cli.planning.actions import Mode, Notice, Stage, ref_to
from kcm_cli.planning.actions import stages as with_actions
from kcm_cli.planning.endpoints.ports import ordered_slice_ports
from kcm_cli.planning.endpoints.slices import (
    Changes,
    Draft,
    creation,
    deletion,
    identity,
    owner_reference,
    replacement,
    same_beyond_identity,
)


@dataclass(slots=True)
class Decision:
    """What to do, what to say, and the figures: endpoints added, updated, removed and skipped, and of each group
    its endpoints and the slices that they are in afterwards."""

    changes: Changes = field(default_factory=Changes)
    notices: tuple[Notice, ...] = ()
    added: int = 0
    updated: int = 0
    removed: int = 0
    skipped: int = 0
    efficiency: dict[GroupKey, tuple[int, int]] = field(default_factory=dict)


def plan(snapshot: Snapshot) -> Decision:
    """Decide on all slices of one Endpoints object."""
    wanted = desired(snapshot.endpoints, snapshot.max_per_subset)
    decision = Decision(notices=_notices(snapshot, wanted), skipped=wanted.skipped)
    existing: dict[GroupKey, list[EndpointSlice]] = {}
    for slice_ in sorted(snapshot.slices, key=lambda slice_: slice_.name):
        key = slice_.address_type, ordered_slice_ports(slice_.ports)
        existing.setdefault(key, []).append(slice_)
    for key in sorted(wanted.groups, key=str):
        group = wanted.groups[key]
        slices = existing.pop(key, [])
        _mirror(decision, snapshot, key, group, slices)
        decision.efficiency[key] = len(group), 1 if group else 0
    for slices in existing.values():
        decision.changes.delete += slices
    decision.changes.recycle(tuple(decision.changes.delete))
    return decision


def _mirror(decision: Decision, snapshot: Snapshot, key: GroupKey, group: Group, slices: list[EndpointSlice]) -> None:
    """One group: its first slice holds all, the others go."""
    changes = decision.changes
    if not group:
        changes.delete += slices
        decision.removed += sum(len(slice_.members) for slice_ in slices)
        return
    first = slices[0] if slices else None
    changes.delete += slices[1:]
    if first is None:
        decision.added += len(group)
    elif not _differs(decision, first, group) and _dressed(first, snapshot.endpoints):
        changes.unchanged.append(first)
        return
    endpoints = [group[key] for key in sorted(group)][: snapshot.max_per_subset]
    address_type, ports = key
    draft = Draft(
        address_type,
        ports,
        names.labels(snapshot.endpoints),
        endpoints,
        names.annotations(snapshot.endpoints),
        first,
        recycled=first is not None,
    )
    (changes.create if first is None else changes.update).append(draft)


def _differs(decision: Decision, slice_: EndpointSlice, group: Group) -> bool:
    """Whether a slice's endpoints are not those of its group; counts how."""
    found = [(endpoint, group.get(identity(endpoint))) for endpoint in slice_.members]
    removed = sum(wanted is None for _, wanted in found)
    added = len(group) - (len(found) - removed)
    updated = sum(wanted is not None and not same_beyond_identity(wanted, endpoint) for endpoint, wanted in found)
    decision.added += added
    decision.updated += updated
    decision.removed += removed
    return bool(added or updated or removed)


def _dressed(slice_: EndpointSlice, endpoints: Endpoints) -> bool:
    """Whether all but the endpoints is as it should be; a slice of earlier Endpoints of this name is made anew."""
    for ref in slice_.metadata.owner_references:
        if ref.kind == ENDPOINTS.kind and ref.name == endpoints.name and ref.uid != endpoints.uid:
            return False
    return names.dressed(slice_, endpoints)


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


def stages(endpoints: Endpoints, changes: Changes) -> tuple[Stage, ...]:
    """The writes, one after the other. Endpoints being deleted get no new slices."""
    owner = owner_reference(endpoints, ENDPOINTS.kind)
    drafts = [] if endpoints.deleting else changes.create
    creates = tuple(creation(owner, endpoints.namespace, endpoints.name, draft) for draft in drafts)
    return with_actions(
        Stage(creates, Mode.SEQUENTIAL),
        Stage(tuple(replacement(owner, draft) for draft in changes.update), Mode.SEQUENTIAL),
        Stage(tuple(deletion(slice_) for slice_ in changes.delete), Mode.SEQUENTIAL),
    )


def removal(slices: Iterable[EndpointSlice]) -> tuple[Stage, ...]:
    """Delete all of these, whichever of them fail."""
    return with_actions(Stage(tuple(deletion(slice_) for slice_ in slices)))
