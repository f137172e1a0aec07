"""The canonical layout of Endpoints: as few subsets as possible, each address in one of them, everything sorted.

upstream: pkg/api/v1/endpoints/util.go#RepackSubsets
"""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from kcm_cli.api.endpoints import EndpointAddress, EndpointPort, EndpointSubset
from kcm_cli.planning.endpoints.ports import ordered_ports

Subsets = tuple[EndpointSubset, ...]
_Identity = tuple[str, str]
_Ports = tuple[EndpointPort | None, ...]
_States = dict[_Identity, bool]


class Packer:
    """Collects addresses by port; an address that is ready and unready on one port is unready."""

    def __init__(self) -> None:
        self._addresses: dict[_Identity, EndpointAddress] = {}
        self._groups: dict[int, tuple[_Ports, dict[_Identity, bool]]] = {}
        """Ports, and the states of their addresses, by the id of the ports, which this keeps alive."""

    def add(self, address: EndpointAddress, ports: _Ports, *, ready: bool) -> None:
        """An address that serves on these ports; the port None stands for having none. Where addresses share one tuple
        of ports, the number of ports costs nothing."""
        identity = _identity(address)
        self._addresses.setdefault(identity, address)
        group = self._groups.get(id(ports))
        if group is None:
            group = self._groups[id(ports)] = ports, {}
        states = group[1]
        states[identity] = ready and states.get(identity, True)

    def subsets(self) -> Subsets:
        """Ports with the same addresses in the same states share a subset."""
        groups = tuple(self._groups.values())
        found: dict[EndpointPort | None, list[int]] = {}
        for number, (ports, _) in enumerate(groups):
            for port in dict.fromkeys(ports):
                found.setdefault(port, []).append(number)
        alike: dict[tuple[int, ...], list[EndpointPort | None]] = {}
        for port, numbers in found.items():
            alike.setdefault(tuple(numbers), []).append(port)
        merged = [(_merged([groups[number][1] for number in numbers]), ports) for numbers, ports in alike.items()]
        if len(merged) > 1:
            merged = _joined(merged)
        packed = [self._subset(states.items(), ports) for states, ports in merged]
        return tuple(sorted(packed, key=_order) if len(packed) > 1 else packed)

    def _subset(
        self, group: Collection[tuple[_Identity, bool]], ports: Iterable[EndpointPort | None]
    ) -> EndpointSubset:
        ready = sorted(identity for identity, is_ready in group if is_ready)
        unready = sorted(identity for identity, is_ready in group if not is_ready)
        return EndpointSubset(
            tuple(self._addresses[identity] for identity in ready),
            tuple(self._addresses[identity] for identity in unready),
            ordered_ports(tuple(port for port in ports if port is not None)),
        )


def _merged(parts: Sequence[_States]) -> _States:
    if len(parts) == 1:
        return parts[0]
    merged: _States = {}
    for states in parts:
        for identity, ready in states.items():
            merged[identity] = ready and merged.get(identity, True)
    return merged


def _joined(
    merged: Iterable[tuple[_States, list[EndpointPort | None]]],
) -> list[tuple[_States, list[EndpointPort | None]]]:
    """Join the ports of equal states."""
    joined: dict[frozenset[tuple[_Identity, bool]], tuple[_States, list[EndpointPort | None]]] = {}
    for states, ports in merged:
        joined.setdefault(frozenset(states.items()), (states, []))[1].extend(ports)
    return list(joined.values())


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
