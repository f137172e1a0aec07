"""Packs endpoints into slices with the fewest writes: unchanged endpoints stay in their slices.

Unwanted endpoints are removed from their slices, changed ones are updated in place. New endpoints first fill the slices
that are written anyway, the fullest first. The rest goes into the slice that it fills best, or into new slices. Empty
slices are deleted. Slices are not merged, which would cost writes.

upstream: staging/src/k8s.io/endpointslice/reconciler.go#reconcileByPortMapping
"""

from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.api.discovery import Endpoint, EndpointSlice
from kcm_cli.controllers.endpointslice.plan.desired import Group, outdated
from kcm_cli.planning.endpoints.ports import Ports
from kcm_cli.planning.endpoints.slices import Changes, Draft, identity, same_beyond_identity


class Packed(Changes):
    """The changes of the slices with one address type and set of ports, and the numbers of added and removed
    endpoints."""

    added: int = 0
    removed: int = 0


class Shape(msgspec.Struct, frozen=True):
    """The properties that all slices of a group share, and the maximum number of endpoints in one."""

    address_type: str
    ports: Ports
    labels: Mapping[str, str]
    limit: int

    def draft(self, endpoints: Iterable[Endpoint], existing: EndpointSlice | None = None) -> Draft:
        annotations = dict(existing.annotations) if existing is not None else {}
        ports = existing.ports or () if existing is not None else self.ports
        return Draft(self.address_type, ports, dict(self.labels), list(endpoints), annotations, existing)


def pack(existing: Iterable[EndpointSlice], wanted: Group, shape: Shape) -> Packed:
    """Distribute the wanted endpoints. The result does not depend on the order of the arguments."""
    packed = Packed()
    left = dict(wanted)
    for slice_ in sorted(existing, key=lambda slice_: slice_.name):
        _keep(slice_, left, shape, packed)
    packed.added = len(left)
    rest = [left[key] for key in sorted(left)]
    packed.update.sort(key=lambda draft: -len(draft.endpoints))
    for draft in packed.update:
        rest = _fill(draft, rest, shape.limit)
    while rest:
        fitting = _best_fit(packed.unchanged, len(rest), shape.limit)
        if fitting is None:
            draft = shape.draft(())
            packed.create.append(draft)
        else:
            packed.unchanged.remove(fitting)
            draft = shape.draft(fitting.members, fitting)
            packed.update.append(draft)
        rest = _fill(draft, rest, shape.limit)
    return packed


def _keep(slice_: EndpointSlice, left: Group, shape: Shape, packed: Packed) -> None:
    """Split one slice into endpoints to keep, update and remove. Endpoints that it has are removed from ``left``."""
    kept: list[Endpoint] = []
    changed = False
    for endpoint in slice_.members:
        wanted = left.pop(identity(endpoint), None)
        if wanted is not None:
            kept.append(wanted)
            changed = changed or not same_beyond_identity(wanted, endpoint)
    removed = len(slice_.members) - len(kept)
    packed.removed += removed
    if changed or removed:
        if kept:
            packed.update.append(shape.draft(kept, slice_))
        else:
            packed.delete.append(slice_)
    elif outdated(slice_.labels, shape.labels):
        packed.update.append(shape.draft(slice_.members, slice_))
    else:
        packed.unchanged.append(slice_)


def _fill(draft: Draft, rest: list[Endpoint], limit: int) -> list[Endpoint]:
    """Add as many endpoints as fit; returns the others."""
    room = max(0, limit - len(draft.endpoints))
    draft.endpoints.extend(rest[:room])
    return rest[room:]


def _best_fit(unchanged: Iterable[EndpointSlice], count: int, limit: int) -> EndpointSlice | None:
    """The slice with the least room left after adding ``count`` endpoints; None if they fill a slice of their own."""
    if count >= limit:
        return None
    best, best_room = None, limit
    for slice_ in unchanged:
        room = limit - count - len(slice_.members)
        if 0 <= room < best_room:
            best, best_room = slice_, room
    return best
