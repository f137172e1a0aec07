"""The canonical layout of Endpoints: as few subsets as possible, each address in one of them, everything sorted.

upstream: pkg/api/v1/endpoints/util.go#RepackSubsets
"""

from collections.abc import Collection, Iterable

import msgspec

from kcm_cli.api.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from kcm_cli.planning.endpoints.ports import ordered_ports

Subsets = tuple[EndpointSubset, ...]
_Identity = tuple[str, str]


class Packer:
    """Collects addresses by port; an address that is ready and unready on one port is unready."""

    def __init__(self) -> None:
        self._addresses: dict[_Identity, EndpointAddress] = {}
        self._ready: dict[EndpointPort | None, dict[_Identity, bool]] = {}

    def add(self, address: EndpointAddress, ports: Iterable[EndpointPort | None], *, ready: bool) -> None:
        """An address that serves on these ports; the port None stands for having none."""
        identity = _identity(address)
        self._addresses.setdefault(identity, address)
        for port in ports:
            states = self._ready.get(port)
            if states is None:
                states = self._ready[port] = {}
            states[identity] = ready and states.get(identity, True)

    def subsets(self) -> Subsets:
        """Ports with the same addresses in the same states share a subset."""
        if len(self._ready) == 1:
            ((port, states),) = self._ready.items()
            return (self._subset(states.items(), () if port is None else (port,)),)
        groups: dict[frozenset[tuple[_Identity, bool]], list[EndpointPort]] = {}
        for port, states in self._ready.items():
            ports = groups.setdefault(frozenset(states.items()), [])
            if port is not None:
                ports.append(port)
        packed = [self._subset(group, tuple(ports)) for group, ports in groups.items()]
        return tuple(sorted(packed, key=_order) if len(packed) > 1 else packed)

    def _subset(self, group: Collection[tuple[_Identity, bool]], ports: tuple[EndpointPort, ...]) -> EndpointSubset:
        ready = sorted(identity for identity, is_ready in group if is_ready)
        unready = sorted(identity for identity, is_ready in group if not is_ready)
        return EndpointSubset(
            tuple(self._addresses[identity] for identity in ready),
            tuple(self._addresses[identity] for identity in unready),
            ordered_ports(ports),
        )


def repack(subsets: Iterable[EndpointSubset], *, versions: bool = False) -> Subsets:
    """The canonical layout of subsets that another client wrote; versions of targets only if requested."""
    packer = Packer()
    clean = _as_is if versions else _versionless
    for subset in subsets:
        ports = subset.ports or (None,)
        for address in subset.addresses:
            packer.add(clean(address), ports, ready=True)
        for address in subset.not_ready_addresses:
            packer.add(clean(address), ports, ready=False)
    return packer.subsets()


def _identity(address: EndpointAddress) -> _Identity:
    return address.ip, address.target_ref.uid if address.target_ref is not None else ""


def _as_is(address: EndpointAddress) -> EndpointAddress:
    return address


def _versionless(address: EndpointAddress) -> EndpointAddress:
    target = address.target_ref
    if target is None or not target.resource_version:
        return address
    plain = msgspec.structs.replace(target, resource_version="")
    return msgspec.structs.replace(address, target_ref=plain)


def _order(subset: EndpointSubset) -> tuple[list[tuple[str, int, str]], list[_Identity], list[_Identity]]:
    return (
        [(port.name, port.port, port.protocol) for port in subset.ports],
        [_identity(address) for address in subset.addresses],
        [_identity(address) for address in subset.not_ready_addresses],
    )
