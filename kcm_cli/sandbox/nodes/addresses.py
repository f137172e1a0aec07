"""The pod addresses of one node, handed out in turn so that a freed address is not reused at once."""

from ipaddress import IPv4Address, IPv4Network


class Addresses:
    """Hands out the addresses of a network in turn, starting with the third (the second is the node's bridge).

    spare: a second network, for nodes that run more pods than the first network has addresses.
    """

    def __init__(self, network: str, spare: str) -> None:
        networks = (IPv4Network(network), IPv4Network(spare))
        self._networks = [(int(each.network_address) + 2, each.num_addresses - 3) for each in networks]
        """The first address, and the number of addresses."""
        self._next = [0, 0]
        self._used: set[str] = set()

    def take(self) -> str:
        """Return a free address, or an empty string if there is none."""
        for index, (first, count) in enumerate(self._networks):
            for _ in range(count if len(self._used) < 2 * count else 0):
                address = str(IPv4Address(first + self._next[index]))
                self._next[index] = (self._next[index] + 1) % count
                if address not in self._used:
                    self._used.add(address)
                    return address
        return ""

    def claim(self, address: str) -> None:
        """Mark an address as used, for a pod that already has it."""
        self._used.add(address)

    def free(self, address: str) -> None:
        self._used.discard(address)
