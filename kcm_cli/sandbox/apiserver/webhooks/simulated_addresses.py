"""The addresses of simulated pods, nodes and Services. They may be in use on the host's network, so none is called."""

import ipaddress
from collections.abc import Iterator, Sequence

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.addresses import Network, plain
from kcm_cli.sandbox import networks
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Tree

_RANGES = GVR("networking.k8s.io", "v1", "servicecidrs")
_NODES = GVR("", "v1", "nodes")


class SimulatedAddresses:
    """Addresses of pods, nodes and Services: the server's ranges, ServiceCIDRs, and podCIDRs of nodes."""

    def __init__(self, store: Store, service_ranges: Sequence[str]) -> None:
        self._store = store
        self._fixed = networks.simulated(service_ranges)

    def has(self, text: str) -> bool:
        """Whether an IP address is simulated. Loopback addresses never are."""
        address = plain(ipaddress.ip_address(text))
        if address is None or address.is_loopback:
            return False
        return any(address in network for network in self._fixed) or any(address in each for each in self._given())

    def _given(self) -> Iterator[Network]:
        for gvr, field in ((_RANGES, "cidrs"), (_NODES, "podCIDRs")):
            for stored in self._store.scan(gvr):
                doc: Tree = stored.doc
                for text in (doc.get("spec") or {}).get(field) or ():
                    yield ipaddress.ip_network(text, strict=False)
