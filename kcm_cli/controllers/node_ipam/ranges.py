"""Parses and validates the options of the node-ipam-controller.

A module of its own, since the manager validates options before controllers are built.

upstream: cmd/kube-controller-manager/app/core.go#newNodeIpamController, pkg/controller/nodeipam/node_ipam_controller.go
"""

from collections.abc import Iterator

import msgspec

from kcm_cli.component.generic_config import KubeCloudSharedConfig
from kcm_cli.controllers.node_ipam.config import NodeIPAMConfig
from kcm_cli.machinery.addresses import Network, parse_cidr

DEFAULT_PREFIXES = {4: 24, 6: 64}
MOST_BITS = 16
"""How many bits a node's prefix may have more than the range, of IPv6: beyond that, too many nodes to keep count."""


class Ranges(msgspec.Struct, frozen=True):
    """cluster: the cluster CIDRs (one, or one of each family) with the prefix length of a node's CIDR. services: the
    service CIDRs, which no node gets.

    unread: values of service CIDR options that cannot be parsed.
    """

    cluster: tuple[tuple[Network, int], ...]
    services: tuple[Network, ...]
    unread: tuple[str, ...] = ()


def problems(shared: KubeCloudSharedConfig, config: NodeIPAMConfig) -> list[str]:
    """The errors of these options, one text each."""
    if not shared.allocate_node_cidrs:
        return []
    found = [*_cluster_problems(shared.cluster_cidr)]
    if not found:
        networks = _networks(shared.cluster_cidr)
        found += _flag_problems(config, networks)
    if not found:
        found += [text for network in networks if (text := _prefix_problem(config, network, len(networks)))]
    return [*found, *_service_problems(config)]


def ranges(shared: KubeCloudSharedConfig, config: NodeIPAMConfig) -> Ranges:
    """The parsed options, for which ``problems`` must be empty."""
    networks = _networks(shared.cluster_cidr)
    services = {text: parse_cidr(text) for text in _services(config)}
    return Ranges(
        tuple((network, _prefix(config, network, len(networks))) for network in networks),
        tuple(parsed[1] for parsed in services.values() if parsed is not None),
        tuple(text for text, parsed in services.items() if parsed is None),
    )


def _networks(text: str) -> list[Network]:
    return [parsed[1] for part in text.split(",") if (parsed := parse_cidr(part.strip())) is not None]


def _services(config: NodeIPAMConfig) -> list[str]:
    both = f"{config.service_cidr},{config.secondary_service_cidr}"
    return [part.strip() for part in both.split(",") if part.strip()]


def _cluster_problems(text: str) -> Iterator[str]:
    if not text.strip():
        yield "cluster-cidr must be given with --allocate-node-cidrs"
        return
    parts = [part.strip() for part in text.split(",")]
    bad = [part for part in parts if parse_cidr(part) is None]
    for part in bad:
        yield f'cluster-cidr: "{part}" is not a range of addresses such as 10.0.0.0/16'
    if len(parts) > 2:
        yield "cluster-cidr must not hold more than two ranges"
    elif not bad and len(parts) == 2 and len({network.version for network in _networks(text)}) == 1:
        yield "cluster-cidr: two ranges must be of different address families"


def _flag_problems(config: NodeIPAMConfig, networks: list[Network]) -> Iterator[str]:
    """Errors of the mask size flags: the one for a single family and those for IPv4 and IPv6 exclude each other, and
    each must fit the cluster CIDRs."""
    by_family = {4: config.node_cidr_mask_size_ipv4, 6: config.node_cidr_mask_size_ipv6}
    if len(networks) > 1:
        if config.node_cidr_mask_size:
            yield (
                "node-cidr-mask-size cannot be used in a dual-stack cluster: "
                "use node-cidr-mask-size-ipv4 and node-cidr-mask-size-ipv6"
            )
        return
    if config.node_cidr_mask_size:
        if any(by_family.values()):
            yield "node-cidr-mask-size cannot be used with node-cidr-mask-size-ipv4 or node-cidr-mask-size-ipv6"
        return
    own = networks[0].version
    other = 10 - own
    if by_family[other]:
        yield f"node-cidr-mask-size-ipv{other} cannot be used in a single-stack IPv{own} cluster"


def _prefix(config: NodeIPAMConfig, network: Network, count: int) -> int:
    own = config.node_cidr_mask_size_ipv4 if network.version == 4 else config.node_cidr_mask_size_ipv6
    return (config.node_cidr_mask_size if count == 1 else 0) or own or DEFAULT_PREFIXES[network.version]


def _prefix_problem(config: NodeIPAMConfig, network: Network, count: int) -> str:
    prefix = _prefix(config, network, count)
    flag = "node-cidr-mask-size" if config.node_cidr_mask_size else f"node-cidr-mask-size-ipv{network.version}"
    if network.prefixlen > prefix:
        return f"cluster-cidr: {network} is smaller than the range of one node, which {flag} makes /{prefix}"
    if prefix > network.max_prefixlen:
        return f"{flag} must not be more than {network.max_prefixlen}, but got {prefix}"
    if network.version == 6 and prefix - network.prefixlen > MOST_BITS:
        return f"{flag} must not be more than {network.prefixlen + MOST_BITS} in {network}, but got {prefix}"
    return ""


def _service_problems(config: NodeIPAMConfig) -> Iterator[str]:
    parsed = [found[1] for text in _services(config) if (found := parse_cidr(text)) is not None]
    if len(parsed) == 2 and parsed[0].version == parsed[1].version:
        yield "service-cluster-ip-range: two ranges must be of different address families"
