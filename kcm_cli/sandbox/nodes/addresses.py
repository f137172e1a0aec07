"""The pod addresses of one node, handed out in turn so that a freed address is not reused at once."""

from ipaddress import IPv4Network


class Addresses:
    """Hands out the addresses of a network in turn, starting with the third (the second is the node's bridge).

    spare: a second network, for nodes that run more pods than the first network has addresses.
    """

    def __init__(self, network: str, spare: str) -> None:
        self._networks = (IPv4Network(network), IPv4Network(spare))
        self._next = [0, 0]
        self._used: set[str] = set()

    def take(self) -> str:
        """Return a free address, or an empty string if there is none."""
        for index, network in enumerate(self._networks):
            count = network.num_addresses - 3
            for _ in range(count if len(self._used) < 2 * count else 0):
                address = str(network[self._next[index] + 2])
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
