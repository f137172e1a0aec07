"""The addresses that a sandbox makes up for its pods, nodes and Services. No network leads there."""

from ipaddress import IPv4Address, IPv4Network, summarize_address_range

MOST_NODES = 12 * 256
FIRST_POD = IPv4Address("10.244.0.0")
"""Each node has 256 addresses for pods from here on."""
FIRST_SPARE = IPv4Address("100.64.0.0")
"""Each node has 1,024 more from here on."""
FIRST_HOST = IPv4Address("172.18.0.2")
SERVICES = IPv4Network("10.0.0.0/16")
"""The default ServiceCIDR."""
ADVERTISED = IPv4Address("192.0.2.1")
"""What the endpoints of the service ``kubernetes`` name: they may not be loopback addresses."""


def made_up() -> list[IPv4Network]:
    """All of them, for as many nodes as there can be."""
    ranges = ((FIRST_POD, MOST_NODES << 8), (FIRST_SPARE, MOST_NODES << 10), (FIRST_HOST, MOST_NODES))
    found = [network for first, size in ranges for network in summarize_address_range(first, first + (size - 1))]
    return [*found, SERVICES, IPv4Network(ADVERTISED)]
