"""The pod addresses of one node: the lowest free one, not used again at once."""

from ipaddress import IPv4Network


class Addresses:
    """Hands out addresses of a network, from the third on (the second is the node's bridge), round and round."""

    def __init__(self, network: str) -> None:
        parsed = IPv4Network(network)
        self._first = int(parsed.network_address) + 2
        self._count = parsed.num_addresses - 3
        self._next = 0
        self._used: set[str] = set()
        self._network = parsed

    def take(self) -> str | None:
        """A free address; None if there is none."""
        for _ in range(self._count):
            address = str(self._network[self._next + 2])
            self._next = (self._next + 1) % self._count
            if address not in self._used:
                self._used.add(address)
                return address
        return None

    def claim(self, address: str) -> None:
        """Mark an address as used, as a pod that runs already has it."""
        self._used.add(address)

    def free(self, address: str) -> None:
        self._used.discard(address)
