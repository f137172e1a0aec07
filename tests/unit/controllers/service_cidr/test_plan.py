"""The ranges that contain an address, and those that can be deleted."""

import ipaddress
import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Condition
from kcm_cli.api.networking import IPAddress, ServiceCIDR, ServiceCIDRSpec, ServiceCIDRStatus
from kcm_cli.controllers.service_cidr import plan
from kcm_cli.controllers.service_cidr.controller import near
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.runtime.store import Store
from tests.kit.growth import grows_less

ALLOCATED = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}


def one(name: str, *cidrs: str, conditions: tuple[Condition, ...] = ()) -> ServiceCIDR:
    meta = ObjectMeta(name=name, uid=f"uid of {name}")
    return ServiceCIDR(
        metadata=meta, spec=ServiceCIDRSpec(cidrs=cidrs), status=ServiceCIDRStatus(conditions=conditions)
    )


def ip(name: str, labels: dict[str, str] | None = None) -> IPAddress:
    return IPAddress(metadata=ObjectMeta(name=name, labels=ALLOCATED if labels is None else labels))


WIDE, INNER, OTHER = one("wide", "10.0.0.0/8"), one("inner", "10.1.0.0/16"), one("other", "192.168.0.0/24")
DUAL, SIX = one("dual", "10.1.0.0/16", "fd00::/112"), one("six", "fd00::/108")


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("10.1.2.3", ["wide", "inner", "dual"]),
        pytest.param("10.1.0.0", ["wide"], id="its network address is not allocated"),
        pytest.param("10.1.255.255", ["wide"], id="its broadcast address is not allocated"),
        ("10.255.255.255", []),
        ("192.168.0.1", ["other"]),
        pytest.param("fd00::", [], id="the first one of IPv6, too"),
        pytest.param("fd00::ffff", ["dual", "six"], id="the last one of IPv6 is"),
        ("fd01::1", []),
    ],
)
def test_containing(address: str, names: list[str]) -> None:
    ranges = [WIDE, INNER, OTHER, DUAL, SIX]
    assert plan.containing(ipaddress.ip_address(address), ranges) == names


@pytest.mark.parametrize(
    ("changed", "names"),
    [(WIDE, ["wide", "inner", "dual"]), (OTHER, ["other"]), (SIX, ["dual", "six"]), (one("none"), [])],
    ids=lambda value: value.name if isinstance(value, ServiceCIDR) else None,
)
def test_an_invalid_network_is_ignored(changed: ServiceCIDR, names: list[str]) -> None:
    odd = one("odd", "10.0.0.0/99", "somewhere")
    assert plan.overlapping(changed, [odd, WIDE, INNER, OTHER, DUAL, SIX]) == names
    assert plan.containing(ipaddress.ip_address("10.1.2.3"), [odd, WIDE]) == ["wide"]


@pytest.mark.parametrize(
    ("changed", "names"),
    [(WIDE, ["wide", "inner", "dual"]), (OTHER, ["other"]), (SIX, ["dual", "six"]), (one("none"), [])],
    ids=lambda value: value.name if isinstance(value, ServiceCIDR) else None,
)
def test_overlapping(changed: ServiceCIDR, names: list[str]) -> None:
    assert plan.overlapping(changed, [WIDE, INNER, OTHER, DUAL, SIX]) == names


@pytest.mark.parametrize(
    ("obj", "given_out"),
    [
        pytest.param(ip("10.0.0.1"), True, id="an allocator's"),
        pytest.param(ip("10.0.0.1", {}), False, id="created by another client"),
        pytest.param(ip("10.0.0.1", {"ipaddress.kubernetes.io/managed-by": "me"}), False, id="another one's"),
        pytest.param(ip("ten"), False, id="no address"),
    ],
)
def test_only_addresses_allocated_by_api_servers_count(obj: IPAddress, given_out: bool) -> None:
    assert (plan.address_of(obj) is not None) is given_out


@pytest.mark.parametrize(
    ("leaving", "ranges", "objects", "orphan"),
    [
        pytest.param(OTHER, [OTHER], [], None, id="no addresses"),
        pytest.param(OTHER, [OTHER], [ip("192.168.0.9")], "192.168.0.9", id="its only range"),
        pytest.param(OTHER, [OTHER], [ip("192.168.0.9", {})], None, id="an address of another client"),
        pytest.param(OTHER, [OTHER, WIDE], [ip("10.0.0.9")], None, id="an address of another range"),
        pytest.param(INNER, [INNER, WIDE], [ip("10.1.0.9")], None, id="part of another"),
        pytest.param(INNER, [INNER, one("same", "10.1.0.0/16")], [ip("10.1.0.9")], None, id="another with the same"),
        pytest.param(WIDE, [INNER, WIDE], [ip("10.1.0.9")], None, id="a smaller one holds the address"),
        pytest.param(WIDE, [INNER, WIDE], [ip("10.1.0.9"), ip("10.2.0.1")], "10.2.0.1", id="but not all"),
        pytest.param(DUAL, [DUAL, INNER], [ip("10.1.0.9")], None, id="one family is contained, the other is free"),
        pytest.param(DUAL, [DUAL, INNER], [ip("fd00::5")], "fd00::5", id="one family is contained, the other is not"),
        pytest.param(DUAL, [DUAL, INNER, SIX], [ip("fd00::5")], None, id="both are contained"),
        pytest.param(INNER, [INNER], [ip("fd00::5")], None, id="an address of the other family"),
    ],
)
def test_orphans(leaving: ServiceCIDR, ranges: list[ServiceCIDR], objects: list[IPAddress], orphan: str | None) -> None:
    found = plan.orphan(leaving, ranges, objects)
    assert (str(found) if found else None) == orphan


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        pytest.param((), False, id="nothing"),
        pytest.param((plan.READY,), True, id="the same"),
        pytest.param((plan.BLOCKED,), False, id="another status"),
        pytest.param((Condition(type="Ready", status="True", message="ready"),), False, id="another message"),
    ],
)
def test_a_condition_is_not_written_twice(conditions: tuple[Condition, ...], says: bool) -> None:
    assert plan.has_condition(one("a", conditions=conditions), plan.READY) is says


def test_writes_have_uid_preconditions() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    status = plan.status(WIDE, plan.BLOCKED, now).body
    assert isinstance(status, dict)
    assert status["metadata"] == {"name": "wide", "uid": "uid of wide"}
    assert status["status"] == {
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "Terminating",
                "message": plan.BLOCKED.message,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ]
    }
    assert [patch.body["metadata"]["uid"] for patch in (plan.protection(WIDE), plan.release(WIDE))] == [  # type: ignore[call-overload, index]
        "uid of wide",
        "uid of wide",
    ]


@pytest.mark.parametrize("text", ["", "none", "10.0.0.0", "10.0.0.0/99", "1e400"])
def test_an_invalid_range_keeps_nothing_and_does_not_affect_others(text: str) -> None:
    odd = one("odd", text, "10.9.0.0/16")
    assert plan.networks_of(odd) == (ipaddress.ip_network("10.9.0.0/16"),)
    assert set(plan.overlapping(WIDE, [odd, WIDE, OTHER])) >= {"odd"}


NOW = datetime(2026, 1, 1, tzinfo=UTC)
EARLY, LATE = "2025-12-31T23:59:55Z", "2025-12-31T23:59:50Z"
"""A deletion within the grace period, and one before it."""


def leaving(since: str, *, held: bool = True) -> ServiceCIDR:
    finalizers = (plan.FINALIZER,) if held else ()
    meta = ObjectMeta(name="r", uid="u", deletion_timestamp=since, finalizers=finalizers)
    return ServiceCIDR(metadata=meta, spec=ServiceCIDRSpec(cidrs=("192.168.0.0/24",)))


def test_a_range_is_protected_and_ready() -> None:
    assert plan.plan(OTHER, [OTHER], [], NOW) == plan.Readiness(plan.protection(OTHER), plan.READY)


@pytest.mark.parametrize(
    ("current", "objects", "expected"),
    [
        pytest.param(leaving(EARLY), [ip("192.168.0.9")], "blocked", id="an address needs it"),
        pytest.param(leaving(EARLY), [], "waits", id="within the grace period"),
        pytest.param(leaving(LATE), [], "released", id="after it"),
        pytest.param(leaving(LATE, held=False), [], "nothing", id="without the finalizer"),
    ],
)
def test_a_terminating_range(current: ServiceCIDR, objects: list[IPAddress], expected: str) -> None:
    plans = {
        "blocked": plan.Readiness(condition=plan.BLOCKED, orphan=ipaddress.ip_address("192.168.0.9")),
        "waits": plan.Readiness(wait_s=5.0),
        "released": plan.Readiness(plan.release(current), releases=True),
        "nothing": plan.Readiness(),
    }
    assert plan.plan(current, [current], objects, NOW) == plans[expected]


hosts = st.tuples(st.sampled_from(["10.0.0.", "10.0.1.", "10.1.0.", "fd00::", "fd00::1:"]), st.integers(0, 9))
cidrs = st.sampled_from(
    ["10.0.0.0/24", "10.0.0.0/23", "10.0.0.0/29", "10.1.0.4/32", "10.0.0.0/8", "fd00::/112", "fd00::/64", "fd00::8/125"]
    + ["0.0.0.0/3", "::/0"]
)


@given(st.lists(st.tuples(st.booleans(), hosts), max_size=20), st.lists(st.lists(cidrs, max_size=2), max_size=4))
def test_an_orphan_is_found_among_the_addresses_near_the_range(
    steps: list[tuple[bool, tuple[str, int]]], given_cidrs: list[list[str]]
) -> None:
    """However the addresses came and went."""
    store: Store[IPAddress] = Store()
    store.add_index(plan.BLOCK, plan.block_of)
    for added, (start, end) in steps:
        if added:
            store.put(ip(f"{start}{end}"))
        else:
            store.pop(f"{start}{end}")
    ranges = [one(f"r{number}", *found) for number, found in enumerate(given_cidrs)]
    for leaving in ranges:
        found = plan.orphan(leaving, ranges, near(leaving, store))
        assert (found is None) == (plan.orphan(leaving, ranges, store) is None)
        assert found is None or store.get(str(found)) is not None


WIDEST = int(ipaddress.ip_address("fd00:10:96::"))
"""The first address of a /64, the widest range of IPv6 that an API server accepts. It allocates random ones of it."""


def spread(rng: random.Random, count: int) -> list[str]:
    """Random addresses of the widest range: nearly each one has a block of its own."""
    return [str(ipaddress.IPv6Address(WIDEST + rng.getrandbits(64))) for _ in range(count)]


@pytest.mark.parametrize("length", [64, 65, 72, 96, 108, 111, 112, 113, 128])
def test_addresses_spread_over_a_wide_range_are_found(length: int) -> None:
    """The same as without the index, also after half of them went and others came."""
    rng = random.Random(length)
    store: Store[IPAddress] = Store()
    store.add_index(plan.BLOCK, plan.block_of)
    ends = ["fd00:10:96::9", "fd00:10:96:0:ffff:ffff:ffff:ffff", "fd00:10:96:1::9", "fd00:10:95:ffff:ffff:ffff::9"]
    names = [*spread(rng, 2000), *ends, "192.168.0.9"]
    for _ in range(2):
        for name in names:
            store.put(ip(name))
        ranges = [one(f"r{number}", f"{rng.choice(names[:-1])}/{rng.randint(64, 128)}") for number in range(3)]
        leaving = one("leaving", f"{names[0]}/{length}", f"{names[-1]}/24")
        ranges.append(leaving)
        found = list(near(leaving, store))
        contained = {obj.name for obj in store if plan.containing(ipaddress.ip_address(obj.name), [leaving])}
        assert contained <= {obj.name for obj in found}
        assert (plan.orphan(leaving, ranges, found) is None) == (plan.orphan(leaving, ranges, store) is None)
        if length >= 112:
            assert len(found) < 20
        for name in names[:1000]:
            store.pop(name)
        names = [*spread(rng, 1000), *names[1000:]]


@pytest.mark.parametrize("length", [108, 120])
def test_addresses_spread_over_a_wide_range_cost_a_range_beside_it_nothing(length: int) -> None:
    """However many they are; nearly each is in a block of its own."""

    def prepare(size: int) -> Callable[[], object]:
        store: Store[IPAddress] = Store()
        store.add_index(plan.BLOCK, plan.block_of)
        for name in spread(random.Random(size), size):
            store.put(ip(name))
        store.put(ip("fd00:10:97::9"))
        beside = one("beside", f"fd00:10:97::/{length}")
        assert [obj.name for obj in near(beside, store)] == ["fd00:10:97::9"]
        return lambda: list(near(beside, store))

    assert grows_less(prepare, 2000, 4)
