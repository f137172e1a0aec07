"""The addresses of nodes and their pods."""

from ipaddress import IPv4Network

import pytest

from kcm_cli.sandbox import networks


def test_each_node_has_addresses_of_its_own() -> None:
    numbers = range(networks.MOST_NODES)
    pods = [networks.pods_of(number) for number in numbers]
    spare = [networks.spare_of(number) for number in numbers]
    assert networks.MOST_NODES > 5000
    assert [networks.node_of(network) for network in pods] == list(numbers)
    found = sorted([*pods, *spare, networks.SERVICES])
    assert all(
        first.broadcast_address < second.network_address for first, second in zip(found, found[1:], strict=False)
    )
    known = networks.simulated()
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
