"""Decides for one address type of a Service which slices to create, update and delete, and which Events to emit.

upstream: staging/src/k8s.io/endpointslice/reconciler.go#reconcileByAddressType, finalize
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from kcm_cli.api.core import SERVICES
from kcm_cli.api.discovery import EndpointSlice
from kcm_cli.controllers.endpointslice.plan import topology
from kcm_cli.controllers.endpointslice.plan.desired import Desired, Snapshot, desired, outdated, slice_labels
from kcm_cli.controllers.endpointslice.plan.distribution import distribute, distribution, remove_hints
from kcm_cli.controllers.endpointslice.plan.packing import Packed, Shape, pack
from kcm_cli.planning.actions import Notice, Plan, ref_to
from kcm_cli.planning.endpoints.ports import Ports, ordered_slice_ports
from kcm_cli.planning.endpoints.slices import Changes, Draft, Efficiency, owned_by, writes_of
from kcm_cli.planning.endpoints.trigger_time import annotated


class Slicing(msgspec.Struct, frozen=True):
    """The decision about one address type.

    changed: the number of slices to write. problems: errors that stop no write; the sync fails after them. zones: the
    number of endpoints by zone if hints are set, else None. unhinted: the number of ready endpoints that the nodes
    allow no hints for, which the Service wants; else None. topology and distribution: labels of the metric of changed
    slices.
    """

    stages: Plan
    changed: int
    problems: tuple[str, ...]
    notices: tuple[Notice, ...]
    zones: Mapping[str, int] | None
    unhinted: int | None
    added: int
    removed: int
    efficiency: Mapping[Ports, Efficiency]
    topology: str
    distribution: str


def plan(snapshot: Snapshot, address_type: str) -> Slicing:
    """Decide about the slices of one address type. Slices of an earlier Service of this name are deleted."""
    service = snapshot.service
    slices = sorted(snapshot.slices, key=lambda slice_: (slice_.name, slice_.uid))
    existing = [slice_ for slice_ in slices if slice_.address_type == address_type]
    own = [slice_ for slice_ in existing if owned_by(slice_, service, SERVICES.kind)]
    foreign = [slice_ for slice_ in existing if not owned_by(slice_, service, SERVICES.kind)]
    changes = Changes(delete=foreign)
    wanted = desired(snapshot, address_type)
    packed = _pack(snapshot, address_type, own, wanted)
    efficiency: dict[Ports, Efficiency] = {}
    for ports, (group, before) in packed.items():
        changes.add(group)
        if ports in wanted.groups:
            after = before + len(group.create) - len(group.delete)
            efficiency[ports] = Efficiency(len(wanted.groups[ports]), after)
    if len(changes.delete) == len(existing) and not changes.create:
        _keep_placeholder(snapshot, address_type, changes)
        efficiency[()] = Efficiency(0, 1)
    hints = _hints(snapshot, address_type, changes)
    changes.recycle([slice_ for slice_ in changes.delete if owned_by(slice_, service, SERVICES.kind)])
    for draft in changes.update:
        if draft.recycled and draft.existing is not None:
            draft.annotations = dict(draft.existing.annotations)
    value = distribution(service, prefer_same=snapshot.prefer_same)
    auto = topology.wants_hints(service.annotations)
    return Slicing(
        _stages(snapshot, changes),
        len(changes.create) + len(changes.update) + len(changes.delete),
        tuple(sorted(wanted.unplaced)),
        hints.notices,
        hints.zones,
        hints.refused,
        sum(group.added for group, _ in packed.values()),
        sum(group.removed for group, _ in packed.values()),
        efficiency,
        "Auto" if auto else "Disabled",
        "" if auto else value,
    )


def _pack(
    snapshot: Snapshot, address_type: str, own: Iterable[EndpointSlice], wanted: Desired
) -> dict[Ports, tuple[Packed, int]]:
    """The packed slices for each set of ports, with the number of slices before. Sets of ports that are not wanted any
    more are emptied."""
    labels = slice_labels(snapshot.service)
    existing: dict[Ports, list[EndpointSlice]] = {}
    for slice_ in own:
        existing.setdefault(ordered_slice_ports(slice_.ports), []).append(slice_)
    result: dict[Ports, tuple[Packed, int]] = {}
    for ports in sorted(wanted.groups, key=str):
        group = wanted.groups[ports]
        slices = existing.pop(ports, [])
        shape = Shape(address_type, ports, labels, snapshot.max_per_slice)
        result[ports] = pack(slices, group, shape), len(slices)
    for ports, slices in existing.items():
        result[ports] = Packed(delete=slices), len(slices)
    return result


def _keep_placeholder(snapshot: Snapshot, address_type: str, changes: Changes) -> None:
    """Keep or create an empty slice, since a Service always has one."""
    labels = slice_labels(snapshot.service)
    if len(changes.delete) == 1:
        last = changes.delete[0]
        if not last.members and not last.ports and not outdated(last.labels, labels):
            changes.unchanged.append(changes.delete.pop())
            return
    changes.create.append(Draft(address_type, (), labels, []))


class _Hints(NamedTuple):
    """See ``Slicing``. ``refused``: its ``unhinted``."""

    zones: dict[str, int] | None = None
    refused: int | None = None
    notices: tuple[Notice, ...] = ()


def _hints(snapshot: Snapshot, address_type: str, changes: Changes) -> _Hints:
    """Set or remove hints: by the Service's annotation if it has one, else by its traffic distribution."""
    service = snapshot.service
    if topology.wants_hints(service.annotations):
        try:
            zones = topology.add_hints(changes, snapshot.ratios)
        except topology.Unhintable as why:
            remove_hints(changes)
            notice = _notice(snapshot, address_type, "Warning", "TopologyAwareHintsDisabled", str(why))
            return _Hints(None, why.endpoints, (notice,))
        if snapshot.hinted:
            return _Hints(zones)
        notice = _notice(snapshot, address_type, "Normal", "TopologyAwareHintsEnabled", topology.ENABLED)
        return _Hints(zones, None, (notice,))
    value = distribution(service, prefer_same=snapshot.prefer_same)
    if value:
        distribute(changes, value)
    else:
        remove_hints(changes)
    if not snapshot.hinted:
        return _Hints()
    notice = _notice(snapshot, address_type, "Warning", "TopologyAwareHintsDisabled", topology.DISABLED)
    return _Hints(None, None, (notice,))


def _notice(snapshot: Snapshot, address_type: str, type_: str, reason: str, text: str) -> Notice:
    return Notice(ref_to(SERVICES, snapshot.service), type_, reason, f"{text}, addressType: {address_type}")


def _stages(snapshot: Snapshot, changes: Changes) -> Plan:
    """The writes, with the trigger time as an annotation."""
    for draft in (*changes.create, *changes.update):
        draft.annotations = annotated(draft.annotations, snapshot.trigger_time)
    return writes_of(SERVICES, snapshot.service, changes)
