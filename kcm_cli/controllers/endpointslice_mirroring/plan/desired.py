"""Endpoints as the endpoints of slices, by address type and ports.

upstream: pkg/controller/endpointslicemirroring/reconciler.go#reconcile, reconciler_helpers.go#desiredCalc
"""

from dataclasses import dataclass, field

from kcm_cli.api.discovery import IPV4, IPV6, Endpoint, EndpointConditions, SlicePort
from kcm_cli.api.endpoints import EndpointAddress, Endpoints, EndpointSubset
from kcm_cli.planning.endpoints.addresses import parse
from kcm_cli.planning.endpoints.ports import Ports, ordered_slice_ports
from kcm_cli.planning.endpoints.slices import Identity, identity
from kcm_cli.planning.endpoints.subsets import repack

_READY, _UNREADY = EndpointConditions(True), EndpointConditions(False)

GroupKey = tuple[str, Ports]
Group = dict[Identity, Endpoint]


@dataclass(slots=True)
class Desired:
    """Endpoints by address type and ports (groups may be empty), addresses that are none, and all left out."""

    groups: dict[GroupKey, Group] = field(default_factory=dict)
    invalid: int = 0
    skipped: int = 0


def desired(endpoints: Endpoints, limit: int) -> Desired:
    """The endpoints to mirror: of each subset in its canonical form, up to the limit, ready ones first."""
    result = Desired()
    for subset in repack(endpoints.subsets, versions=True):
        _add(result, subset, limit)
    return result


def _add(result: Desired, subset: EndpointSubset, limit: int) -> None:
    ports = _ports(subset)
    groups = {type_: result.groups.setdefault((type_, ports), {}) for type_ in (IPV4, IPV6)}
    addresses = [(address, _READY) for address in subset.addresses]
    addresses += [(address, _UNREADY) for address in subset.not_ready_addresses]
    added = 0
    for address, conditions in addresses:
        if added >= limit:
            break
        parsed = parse(address.ip)
        if parsed is None:
            result.invalid += 1
            continue
        endpoint = _endpoint(address, parsed.text, conditions)
        groups[parsed.type][identity(endpoint)] = endpoint
        added += 1
    result.skipped += len(addresses) - added


def _endpoint(address: EndpointAddress, text: str, conditions: EndpointConditions) -> Endpoint:
    return Endpoint((text,), conditions, address.hostname or None, address.target_ref, address.node_name)


def _ports(subset: EndpointSubset) -> Ports:
    ports = tuple(SlicePort(port.name, port.protocol, port.port, port.app_protocol) for port in subset.ports)
    return ordered_slice_ports(ports)
