"""The addresses of nodes and their pods."""

from ipaddress import IPv4Network

import pytest

from kcm_cli.sandbox import networks
from kcm_cli.sandbox.networks import SERVICE_RANGE


def test_each_node_has_addresses_of_its_own() -> None:
    numbers = range(networks.MOST_NODES)
    pods = [networks.pods_of(number) for number in numbers]
    spare = [networks.spare_of(number) for number in numbers]
    assert networks.MOST_NODES > 5000
    assert [networks.node_of(network) for network in pods] == list(numbers)
    found = sorted([*pods, *spare, IPv4Network(SERVICE_RANGE)])
    assert all(
        first.broadcast_address < second.network_address for first, second in zip(found, found[1:], strict=False)
    )
    known = networks.simulated([SERVICE_RANGE])
    assert all(any(one.subnet_of(each) for each in known) for one in (pods[0], pods[-1], spare[0], spare[-1]))


@pytest.mark.parametrize("number", [-1, networks.MOST_NODES])
def test_the_number_of_networks_is_bounded(number: int) -> None:
    with pytest.raises(ValueError, match="nodes only"):
        networks.pods_of(number)
    with pytest.raises(ValueError, match="nodes only"):
        networks.spare_of(number)


@pytest.mark.parametrize("text", ["10.244.0.0/25", "10.243.0.0/24", "192.0.2.0/24", "11.0.0.0/24"])
def test_networks_of_no_node(text: str) -> None:
    assert networks.node_of(IPv4Network(text)) is None


@pytest.mark.parametrize(
    ("server", "dns"),
    [
        ("10.0.0.1", "10.0.0.10"),
        ("fd00::1", "fd00::a"),
        ("", "10.0.0.10"),
        ("255.255.255.241", "255.255.255.250"),
        ("255.255.255.249", ""),
        ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff9", ""),
    ],
)
def test_the_address_of_dns_follows_that_of_the_server(server: str, dns: str) -> None:
    assert networks.dns_beside(server) == dns


@pytest.mark.parametrize(
    ("ranges", "problem"),
    [
        ("10.0.0.0/30", "10.0.0.0/30 has fewer than 8 addresses"),
        ("10.0.0.0/16,fd00::/128", "fd00::/128 has fewer than 2"),
    ],
)
def test_a_range_that_is_too_small_is_named(ranges: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        networks.service_ranges(ranges)
    assert networks.service_ranges("10.0.0.0/29,fd00::/127") == ("10.0.0.0/29", "fd00::/127")


@pytest.mark.parametrize(
    ("ranges", "nodes", "system_pods", "problem"),
    [
        ("10.244.0.0/16", True, False, "10.244.0.0/16 overlaps 10.244.0.0/14"),
        ("10.224.0.0/11", True, False, "10.224.0.0/11 overlaps 10.244.0.0/14"),
        ("fd00::/112,100.64.0.0/24", True, False, "100.64.0.0/24 overlaps 100.64.0.0/10"),
        ("172.18.0.0/24", True, False, "172.18.0.0/24 overlaps 172.18.0.2/31"),
        ("10.244.0.0/16", False, True, ""),
        ("10.96.0.0/12,fd00:10:96::/112", True, True, ""),
        (SERVICE_RANGE, True, True, ""),
        ("10.0.0.0/28", True, True, ""),
        ("10.0.0.0/29", True, True, "10.0.0.0/29 is too small: DNS has the tenth address"),
        ("10.0.0.0/29", True, False, ""),
        ("fd00::/125,10.0.0.0/16", True, True, "fd00::/125 is too small: DNS has the tenth address"),
    ],
)
def test_ranges_of_services_that_do_not_fit(ranges: str, nodes: bool, system_pods: bool, problem: str) -> None:
    found = networks.misfit(networks.service_ranges(ranges), nodes=nodes, system_pods=system_pods)
    assert found == problem or (problem and found.startswith(problem))
