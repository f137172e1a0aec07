"""The addresses of a sandbox's pods, nodes and Services, which are not routed anywhere."""

from ipaddress import IPv4Address, IPv4Network, summarize_address_range

MOST_NODES = 24 * 256
_POD_BLOCKS = ((IPv4Address("10.244.0.0"), 12 * 256), (IPv4Address("10.224.0.0"), 12 * 256))
"""Each node has 256 addresses for pods: the first nodes from 10.244.0.0 on, those behind them from 10.224.0.0 on."""
_SPARE_BLOCKS = ((IPv4Address("100.64.0.0"), 4096), (IPv4Address("10.160.0.0"), 2048))
"""Each node has 1,024 more."""
FIRST_HOST = IPv4Address("172.18.0.2")
SERVICES = IPv4Network("10.0.0.0/16")
"""The default ServiceCIDR."""
DNS = SERVICES[10]
"""The address that kubeadm gives the cluster's DNS server."""
ADVERTISED = IPv4Address("192.0.2.1")
"""What the endpoints of the service ``kubernetes`` name: they may not be loopback addresses."""


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


def simulated() -> list[IPv4Network]:
    """All of these networks, for the maximum number of nodes."""
    ranges = [(first, count << 8) for first, count in _POD_BLOCKS]
    ranges += [(first, count << 10) for first, count in _SPARE_BLOCKS]
    ranges.append((FIRST_HOST, MOST_NODES))
    found = [network for first, size in ranges for network in summarize_address_range(first, first + (size - 1))]
    return [*found, SERVICES, IPv4Network(ADVERTISED)]
