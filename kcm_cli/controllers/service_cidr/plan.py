"""Decides which ServiceCIDRs contain which addresses, and whether a deleted one can be released.

upstream: pkg/controller/servicecidrs/servicecidrs_controller.go, pkg/api/servicecidr/servicecidr.go
"""

import ipaddress
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import lru_cache

import msgspec

from kcm_cli.api.core import Condition
from kcm_cli.api.networking import SERVICE_CIDRS, IPAddress, ServiceCIDR
from kcm_cli.machinery.addresses import Address, Network, can_allocate, parse_cidr
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.actions import Apply, Patch
from kcm_cli.planning.conditions import find
from kcm_cli.planning.protection import is_held, lacks
from kcm_cli.planning.status import applied_status

MANAGER = "service-cidr-controller"
FINALIZER = "networking.k8s.io/service-cidr-finalizer"
GRACE_S = 10.0
"""How long a range is kept after its deletion: every API server has to stop allocating from it first."""
READY = Condition(type="Ready", status="True", message="Kubernetes Service CIDR is ready")
BLOCKED = Condition(
    type="Ready",
    status="False",
    reason="Terminating",
    message=("There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"),
)
BLOCK = "block of addresses"
"""The index by which a deleted range finds its addresses among however many others: the /24 of an address, for IPv6 the
/112."""
_MANAGED_BY, _ALLOCATOR = "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"


class Readiness(msgspec.Struct, frozen=True):
    """The writes about a ServiceCIDR in order, and the seconds until the next check.

    orphan: an address that still needs the ServiceCIDR. releases: the patch removes the finalizer, so the other
    ServiceCIDRs have to be read from the API server first; a cached one may just have been deleted.
    """

    patch: Patch | None = None
    condition: Condition | None = None
    orphan: Address | None = None
    wait_s: float | None = None
    releases: bool = False


def plan(
    current: ServiceCIDR, ranges: Collection[ServiceCIDR], objects: Iterable[IPAddress], now: datetime
) -> Readiness:
    """Protect the ServiceCIDR and mark it as ready. Once deleted, keep it while addresses need it."""
    if not current.deleting:
        return Readiness(protection(current) if lacks(current, FINALIZER) else None, READY)
    blocking = orphan(current, ranges, objects)
    if blocking is not None:
        return Readiness(condition=BLOCKED, orphan=blocking)
    left_s = GRACE_S - (now - parse_time(current.metadata.deletion_timestamp or "")).total_seconds()
    if left_s > 0:
        return Readiness(wait_s=left_s)
    return Readiness(release(current), releases=True) if is_held(current, FINALIZER) else Readiness()


def overlapping(changed: ServiceCIDR, ranges: Iterable[ServiceCIDR]) -> list[str]:
    """The names of the ServiceCIDRs that overlap one, including its own."""
    networks = networks_of(changed)
    return [one.name for one in ranges if any(_overlap(a, b) for a in networks_of(one) for b in networks)]


def containing(address: Address, ranges: Iterable[ServiceCIDR]) -> list[str]:
    """The names of the ServiceCIDRs from which an address can be allocated."""
    return [one.name for one in ranges if any(can_allocate(network, address) for network in networks_of(one))]


def address_of(obj: IPAddress) -> Address | None:
    """The address, if an API server allocated it to a Service."""
    if obj.labels.get(_MANAGED_BY) != _ALLOCATOR:
        return None
    try:
        return ipaddress.ip_address(obj.name)
    except ValueError:
        return None


def block_of(obj: IPAddress) -> tuple[str, ...]:
    """The index function BLOCK: the block that an allocated address is in."""
    address = address_of(obj)
    return () if address is None else (_block(address.version, _number(address)),)


def blocks_of(one: ServiceCIDR, filed: Collection[str]) -> Iterator[str]:
    """The blocks that a ServiceCIDR overlaps: all of them, or those filed if they are fewer.

    API servers allocate random addresses, and a range of IPv6 may be a /64: nearly each address is in a block of its
    own then. So blocks are never parsed, and those filed for other ranges cost a narrow one nothing.
    """
    for network in networks_of(one):
        first, last = _number(network.network_address), _number(network.broadcast_address)
        if last - first < len(filed):
            yield from (_block(network.version, number) for number in range(first, last + 1))
        else:
            low, high = _block(network.version, first), _block(network.version, last)
            yield from (text for text in filed if low <= text <= high)


def _number(address: Address) -> int:
    """The number of its block."""
    return int(address) >> (8 if address.version == 4 else 16)


def _block(version: int, number: int) -> str:
    """The text of a block; those of a version are as long as each other, and so in the order of their numbers."""
    return f"{version} {number:028x}"


def is_contained(leaving: ServiceCIDR, ranges: Collection[ServiceCIDR]) -> bool:
    """Whether each of its networks is contained in one of another ServiceCIDR."""
    others = [network for one in ranges if one.name != leaving.name for network in networks_of(one)]
    return all(any(_contains(outer, own) for outer in others) for own in networks_of(leaving))


def orphan(leaving: ServiceCIDR, ranges: Collection[ServiceCIDR], objects: Iterable[IPAddress]) -> Address | None:
    """An address that only the deleted ServiceCIDR contains; None if there is none.

    objects: those in the blocks that it overlaps, or more; an address may come twice.
    """
    if is_contained(leaving, ranges):
        return None
    versions = {network.version for network in networks_of(leaving)}
    for obj in objects:
        address = address_of(obj)
        if address is not None and address.version in versions and containing(address, ranges) == [leaving.name]:
            return address
    return None


def has_condition(current: ServiceCIDR, condition: Condition) -> bool:
    """Whether the status has this condition, regardless of its time."""
    known = find(current.status.conditions, condition.type)
    return known is not None and (known.status, known.reason, known.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )


def status(current: ServiceCIDR, condition: Condition, now: datetime) -> Apply:
    """The status with this condition."""
    item: Doc = {"type": condition.type, "status": condition.status, "lastTransitionTime": format_time(now)}
    conditions: list[Doc] = [{**item, "reason": condition.reason, "message": condition.message}]
    return applied_status(SERVICE_CIDRS, current, {"conditions": conditions}, MANAGER)


def protection(current: ServiceCIDR) -> Patch:
    """A patch that adds the finalizer."""
    return _finalizers(current, {"finalizers": [FINALIZER]}, "finalizer is missing")


def release(current: ServiceCIDR) -> Patch:
    """A patch that removes the finalizer."""
    return _finalizers(current, {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}, "no address depends on it")


def _finalizers(current: ServiceCIDR, change: Doc, reason: str) -> Patch:
    return Patch(SERVICE_CIDRS, "", current.name, {"metadata": {"uid": current.uid, **change}}, reason=reason)


def networks_of(one: ServiceCIDR) -> tuple[Network, ...]:
    """The networks of a ServiceCIDR; invalid ones are left out."""
    return _parsed(one.spec.cidrs)


@lru_cache(maxsize=1024)
def _parsed(cidrs: tuple[str, ...]) -> tuple[Network, ...]:
    found = (parse_cidr(text) for text in cidrs)
    return tuple(network for _, network in filter(None, found))


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and (one[0] in other or other[0] in one)


def _contains(outer: Network, inner: Network) -> bool:
    return outer.version == inner.version and outer.prefixlen <= inner.prefixlen and inner[0] in outer
