"""Occupied ranges, and the next allocation."""

import ipaddress
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.node_ipam.cidr_set import CIDRError, CIDRSet, RangeMetrics, overlap
from kcm_cli.machinery.addresses import Network


def net(text: str) -> Network:
    return ipaddress.ip_network(text)


def cidr_set(text: str, prefix: int, registry: Registry | None = None) -> CIDRSet:
    return CIDRSet(net(text), prefix, RangeMetrics(registry or Registry(), text))


def take(cidrs: CIDRSet, count: int) -> list[str]:
    return [str(cidrs.take()) for _ in range(count)]


@pytest.mark.parametrize(
    ("cluster", "prefix", "first"),
    [
        ("10.0.0.0/22", 24, ["10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"]),
        ("127.123.234.0/28", 30, ["127.123.234.0/30", "127.123.234.4/30", "127.123.234.8/30"]),
        ("10.0.0.0/8", 32, ["10.0.0.0/32", "10.0.0.1/32", "10.0.0.2/32"]),
        ("fd00:1::/48", 64, ["fd00:1::/64", "fd00:1:0:1::/64", "fd00:1:0:2::/64"]),
        ("fd00:1:2:3:4::/80", 96, ["fd00:1:2:3:4::/96", "fd00:1:2:3:4:1::/96", "fd00:1:2:3:4:2::/96"]),
        ("fd00::/60", 68, ["fd00::/68", "fd00::1000:0:0:0/68", "fd00::2000:0:0:0/68"]),
    ],
)
def test_ranges_are_allocated_in_turn(cluster: str, prefix: int, first: list[str]) -> None:
    assert take(cidr_set(cluster, prefix), 3) == first


def test_a_released_range_is_reused_last() -> None:
    cidrs = cidr_set("10.0.0.0/22", 24)
    take(cidrs, 2)
    cidrs.release(net("10.0.0.0/24"))
    assert take(cidrs, 3) == ["10.0.2.0/24", "10.0.3.0/24", "10.0.0.0/24"]
    with pytest.raises(CIDRError, match="there are no remaining CIDRs left to allocate in the accepted range"):
        cidrs.take()


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        pytest.param("10.0.1.0/24", ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"], id="one part"),
        pytest.param("10.0.1.128/25", ["10.0.0.0/24", "10.0.2.0/24", "10.0.3.0/24"], id="less than a part"),
        pytest.param("10.0.2.0/23", ["10.0.0.0/24", "10.0.1.0/24"], id="several"),
        pytest.param("10.0.0.0/22", [], id="all"),
        pytest.param("10.0.0.0/8", [], id="more than all"),
    ],
)
def test_occupied_ranges_are_not_allocated(taken: str, left: list[str]) -> None:
    cidrs = cidr_set("10.0.0.0/22", 24)
    cidrs.occupy(net(taken))
    cidrs.occupy(net(taken))
    assert take(cidrs, len(left)) == left
    with pytest.raises(CIDRError):
        cidrs.take()
    cidrs.release(net("10.0.0.0/8"))
    assert len(set(take(cidrs, 4))) == 4


@pytest.mark.parametrize("other", ["10.0.4.0/24", "9.0.0.0/8", "fd00::/64"])
def test_ranges_outside_are_refused(other: str) -> None:
    cidrs = cidr_set("10.0.0.0/22", 24)
    text = f"cidr {other} is out the range of cluster cidr 10.0.0.0/22"
    for change in (cidrs.occupy, cidrs.release):
        with pytest.raises(CIDRError, match=text):
            change(net(other))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", True),
        ("10.1.0.0/16", "10.0.0.0/8", True),
        ("10.0.0.0/16", "10.1.0.0/16", False),
        ("::/0", "10.0.0.0/8", False),
    ],
)
def test_overlap(one: str, other: str, expected: bool) -> None:
    assert overlap(net(one), net(other)) is expected


def test_metrics() -> None:
    registry = Registry()
    cidrs = cidr_set("10.0.0.0/22", 24, registry)
    cidrs.occupy(net("10.0.0.0/23"))
    cidrs.take()
    cidrs.release(net("10.0.0.0/24"))
    text = registry.expose().decode()
    for line in (
        'cirdset_max_cidrs{clusterCIDR="10.0.0.0/22"} 4',
        'cidrset_cidrs_allocations_total{clusterCIDR="10.0.0.0/22"} 3',
        'cidrset_cidrs_releases_total{clusterCIDR="10.0.0.0/22"} 1',
        'cidrset_usage_cidrs{clusterCIDR="10.0.0.0/22"} 0.5',
        'cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.0.0.0/22",le="1"} 0',
        'cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.0.0.0/22",le="5"} 1',
        'cidrset_allocation_tries_per_request_sum{clusterCIDR="10.0.0.0/22"} 2',
    ):
        assert f"node_ipam_controller_{line}\n" in text


def parts(networks: Iterable[Network], prefix: int) -> set[str]:
    return {str(part) for network in networks for part in network.subnets(new_prefix=prefix)}


@given(st.lists(st.tuples(st.sampled_from("tor"), st.integers(0, 31), st.integers(27, 32)), max_size=40))
def test_no_range_is_allocated_twice(steps: list[tuple[str, int, int]]) -> None:
    """A model: the set of the parts that are taken."""
    cidrs, taken = cidr_set("10.0.0.0/27", 30), set[str]()
    for step, address, prefix in steps:
        network = ipaddress.ip_network((f"10.0.0.{address}", prefix), strict=False)
        whole = network if prefix <= 30 else network.supernet(new_prefix=30)
        if step == "o":
            cidrs.occupy(network)
            taken |= parts([whole], 30)
        elif step == "r":
            cidrs.release(network)
            taken -= parts([whole], 30)
        elif len(taken) == 8:
            with pytest.raises(CIDRError):
                cidrs.take()
        else:
            part = str(cidrs.take())
            assert part not in taken
            taken.add(part)
