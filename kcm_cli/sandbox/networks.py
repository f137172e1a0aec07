"""The addresses of a sandbox's pods, nodes and Services, which are not routed anywhere."""

from collections.abc import Sequence
from functools import cache
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network, summarize_address_range

from kcm_cli.machinery.addresses import Network

MOST_NODES = 24 * 256
_POD_BLOCKS = ((IPv4Address("10.244.0.0"), 12 * 256), (IPv4Address("10.224.0.0"), 12 * 256))
"""Each node has 256 addresses for pods: the first nodes from 10.244.0.0 on, those behind them from 10.224.0.0 on."""
_SPARE_BLOCKS = ((IPv4Address("100.64.0.0"), 4096), (IPv4Address("10.160.0.0"), 2048))
"""Each node has 1,024 more."""
FIRST_HOST = IPv4Address("172.18.0.2")
SERVICE_RANGE = "10.0.0.0/16"
"""The default range of Services."""
_LEAST_ADDRESSES, _LEAST_OF_FIRST, _TWO = 2, 8, "10.96.0.0/16,fd00:10:96::/112"
"""How many addresses a range of Services has at least; the first one has that of the API server. upstream:
pkg/controlplane/apiserver/options/options.go#ServiceIPRange"""
DNS_OFFSET = 9
"""kubeadm gives DNS the tenth address of the Services' range; the API server has the first one."""
DNS = IPv4Network(SERVICE_RANGE)[1 + DNS_OFFSET]
ADVERTISED = IPv4Address("192.0.2.1")
"""What the endpoints of the service ``kubernetes`` name: they may not be loopback addresses."""


def service_ranges(text: str) -> tuple[str, ...]:
    """The value of ``--service-cluster-ip-range``: a CIDR, or two of different families, the default one first.

    Raises ValueError.
    """
    found: list[Network] = []
    for part in text.split(","):
        try:
            network = ip_network(part.strip(), strict=False)
        except ValueError:
            raise ValueError(f'"{part.strip()}" is no CIDR, such as {SERVICE_RANGE}, or two: {_TWO}') from None
        least = _LEAST_ADDRESSES if found else _LEAST_OF_FIRST
        if network.num_addresses < least:
            raise ValueError(f"{network} has fewer than {least} addresses")
        found.append(network)
    if len(found) > len({network.version for network in found}):
        raise ValueError(f"two CIDRs are of different families, such as {_TWO}")
    return tuple(map(str, found))


def misfit(ranges: Sequence[str], *, nodes: bool = True, system_pods: bool = False) -> str:
    """Why a sandbox cannot use these ranges for Services; empty if it can.

    nodes: whether nodes are simulated. system_pods: whether DNS needs an address.
    """
    for network in map(ip_network, ranges) if nodes else ():
        for other in _of_nodes():
            if network.overlaps(other):
                return f"{network} overlaps {other}, the addresses of simulated pods and nodes"
    if system_pods and ip_network(ranges[0]).num_addresses <= 1 + DNS_OFFSET:
        return f"{ranges[0]} is too small: DNS has the tenth address"
    return ""


def dns_beside(server: str) -> str:
    """The address of DNS in the Services' range, by that of the API server; empty if the last ones are too few.
    ``server``: empty for that of the default range."""
    if not server:
        return str(DNS)
    first = ip_address(server)
    fits = int(first) + DNS_OFFSET < 1 << first.max_prefixlen
    return str(first + DNS_OFFSET) if fits else ""


def pods_of(number: int) -> IPv4Network:
    """The pod CIDR of a node. Raises ValueError if there are no more."""
    return _block(_POD_BLOCKS, number, 8)


def spare_of(number: int) -> IPv4Network:
    """Additional addresses for a node's pods. Raises ValueError if there are no more."""
    return _block(_SPARE_BLOCKS, number, 10)


def node_of(network: IPv4Network) -> int | None:
    """The number of the node with this pod CIDR; None if there is none."""
    number = 0
    for first, count in _POD_BLOCKS:
        at, rest = divmod(int(network.network_address) - int(first), 256)
        if network.prefixlen == 24 and not rest and 0 <= at < count:
            return number + at
        number += count
    return None


def _block(blocks: tuple[tuple[IPv4Address, int], ...], number: int, bits: int) -> IPv4Network:
    at = number
    for first, count in blocks:
        if 0 <= at < count:
            return IPv4Network((int(first) + (at << bits), 32 - bits))
        at -= count
    raise ValueError(f"there are addresses for {MOST_NODES} nodes only")


def simulated(service_ranges: Sequence[str]) -> list[Network]:
    """All of these networks, for the maximum number of nodes."""
    return [*_of_nodes(), *map(ip_network, service_ranges), IPv4Network(ADVERTISED)]


@cache
def _of_nodes() -> tuple[IPv4Network, ...]:
    """The networks of nodes and their pods."""
    ranges = [(first, count << 8) for first, count in _POD_BLOCKS]
    ranges += [(first, count << 10) for first, count in _SPARE_BLOCKS]
    ranges.append((FIRST_HOST, MOST_NODES))
    return tuple(network for first, size in ranges for network in summarize_address_range(first, first + (size - 1)))
