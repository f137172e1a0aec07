"""The ranges in flags, and their errors."""

from dataclasses import replace

import pytest

from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.controllers.node_ipam.ranges import problems, ranges

DUAL = "10.0.0.0/16,fd00::/56"


def shared(cluster: str) -> KubeCloudSharedConfig:
    return KubeCloudSharedConfig(allocate_node_cidrs=True, cluster_cidr=cluster)


@pytest.mark.parametrize(
    ("cluster", "config", "expected"),
    [
        pytest.param("10.0.0.0/16", NodeIPAMConfig(), {"10.0.0.0/16": 24}, id="IPv4"),
        pytest.param("fd00::/56", NodeIPAMConfig(), {"fd00::/56": 64}, id="IPv6"),
        pytest.param(DUAL, NodeIPAMConfig(), {"10.0.0.0/16": 24, "fd00::/56": 64}, id="both"),
        pytest.param("fd00::/56,10.0.0.0/16", NodeIPAMConfig(), {"fd00::/56": 64, "10.0.0.0/16": 24}, id="turned"),
        pytest.param(" 10.0.0.0/16, fd00::/56 ", NodeIPAMConfig(), {"10.0.0.0/16": 24, "fd00::/56": 64}, id="spaces"),
        pytest.param("10.000.3.9/16", NodeIPAMConfig(), {"10.0.0.0/16": 24}, id="any spelling"),
        pytest.param("10.0.0.0/16", NodeIPAMConfig(node_cidr_mask_size=25), {"10.0.0.0/16": 25}, id="size"),
        pytest.param("fd00::/56", NodeIPAMConfig(node_cidr_mask_size=60), {"fd00::/56": 60}, id="size of IPv6"),
        pytest.param("10.0.0.0/16", NodeIPAMConfig(node_cidr_mask_size_ipv4=26), {"10.0.0.0/16": 26}, id="size, IPv4"),
        pytest.param("fd00::/56", NodeIPAMConfig(node_cidr_mask_size_ipv6=72), {"fd00::/56": 72}, id="size, IPv6"),
        pytest.param(
            DUAL,
            NodeIPAMConfig(node_cidr_mask_size_ipv4=26, node_cidr_mask_size_ipv6=72),
            {"10.0.0.0/16": 26, "fd00::/56": 72},
            id="sizes of both",
        ),
        pytest.param("10.0.0.0/24", NodeIPAMConfig(), {"10.0.0.0/24": 24}, id="one node"),
    ],
)
def test_ranges(cluster: str, config: NodeIPAMConfig, expected: dict[str, int]) -> None:
    assert problems(shared(cluster), config) == []
    assert {str(network): prefix for network, prefix in ranges(shared(cluster), config).cluster} == expected


@pytest.mark.parametrize(
    ("cluster", "config", "problem"),
    [
        pytest.param("", NodeIPAMConfig(), "cluster-cidr must be given with --allocate-node-cidrs", id="none"),
        pytest.param("ten", NodeIPAMConfig(), 'cluster-cidr: "ten" is not a range', id="no range"),
        pytest.param("10.0.0.0", NodeIPAMConfig(), 'cluster-cidr: "10.0.0.0" is not a range', id="an address"),
        pytest.param("10.0.0.0/16,", NodeIPAMConfig(), 'cluster-cidr: "" is not a range', id="empty"),
        pytest.param(f"{DUAL},10.1.0.0/16", NodeIPAMConfig(), "must not hold more than two ranges", id="three"),
        pytest.param("10.0.0.0/16,10.1.0.0/16", NodeIPAMConfig(), "of different address families", id="one family"),
        pytest.param(DUAL, NodeIPAMConfig(node_cidr_mask_size=24), "node-cidr-mask-size cannot be used", id="dual"),
        pytest.param(
            "10.0.0.0/16",
            NodeIPAMConfig(node_cidr_mask_size=24, node_cidr_mask_size_ipv4=24),
            "node-cidr-mask-size cannot be used with",
            id="two sizes",
        ),
        pytest.param(
            "10.0.0.0/16",
            NodeIPAMConfig(node_cidr_mask_size_ipv6=64),
            "node-cidr-mask-size-ipv6 cannot be used in a single-stack IPv4 cluster",
            id="IPv6 in IPv4",
        ),
        pytest.param(
            "fd00::/56",
            NodeIPAMConfig(node_cidr_mask_size_ipv4=24),
            "node-cidr-mask-size-ipv4 cannot be used in a single-stack IPv6 cluster",
            id="IPv4 in IPv6",
        ),
        pytest.param("10.0.0.0/25", NodeIPAMConfig(), "10.0.0.0/25 is smaller than the range of one node", id="small"),
        pytest.param("10.0.0.0/16", NodeIPAMConfig(node_cidr_mask_size=-3), "is smaller than the range", id="negative"),
        pytest.param("10.0.0.0/16", NodeIPAMConfig(node_cidr_mask_size=33), "must not be more than 32", id="more bits"),
        pytest.param(
            "fd00::/40",
            NodeIPAMConfig(),
            "node-cidr-mask-size-ipv6 must not be more than 56 in fd00::/40, but got 64",
            id="too many nodes",
        ),
        pytest.param(
            "10.0.0.0/16",
            NodeIPAMConfig(service_cidr="10.1.0.0/16", secondary_service_cidr="10.2.0.0/16"),
            "service-cluster-ip-range: two ranges must be of different address families",
            id="services of one family",
        ),
    ],
)
def test_problems(cluster: str, config: NodeIPAMConfig, problem: str) -> None:
    (found,) = problems(shared(cluster), config)
    assert problem in found


def test_options_are_not_checked_without_allocation() -> None:
    off = replace(shared("ten"), allocate_node_cidrs=False)
    assert problems(off, NodeIPAMConfig(node_cidr_mask_size_ipv6=1)) == []


def test_invalid_service_ranges_are_reported() -> None:
    found = ranges(shared("10.0.0.0/16"), NodeIPAMConfig(service_cidr="ten", secondary_service_cidr="10.0.255.0/24"))
    assert ([str(network) for network in found.services], found.unread) == (["10.0.255.0/24"], ("ten",))
