"""Finds the pod's port for a Service's port, and puts ports in order.

Ports are sorted by a hash of their Go dump, as upstream: lists that kube-controller-manager wrote are not written
again.

upstream: staging/src/k8s.io/endpointslice/utils.go#FindPort, util/controller_utils.go#NewPortMapKey,
pkg/api/v1/endpoints/util.go#portsByHash
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

from kcm_cli.api.core import Container, Pod, Service, ServicePort
from kcm_cli.api.discovery import SlicePort
from kcm_cli.api.endpoints import EndpointPort
from kcm_cli.machinery.hashes import fnv128a

NO_CLUSTER_IP = "None"
Ports = tuple[SlicePort, ...]
T = TypeVar("T")
_Numbered = tuple[tuple[str, str], int]
_MOST_SHARED = 64
_MOST_HASHES = 1 << 15


def has_cluster_ip(service: Service) -> bool:
    return service.spec.cluster_ip not in ("", NO_CLUSTER_IP)


class PodPorts(Generic[T]):
    """The ports on which the pods of one Service serve, as ``make`` gives them from pairs of a port of the Service and
    the number of its target port. Pods with the same numbers share one result."""

    def __init__(self, service: Service, make: Callable[[Iterable[tuple[ServicePort, int]]], T]) -> None:
        self._ports = service.spec.ports
        self._make = make
        self._named = {(port.target_port, port.protocol) for port in self._ports if isinstance(port.target_port, str)}
        self._known: dict[tuple[_Numbered, ...], T] = {}

    def of(self, pod: Pod) -> T:
        """The ports of a pod; without those that it lacks."""
        named = tuple(one for one in _numbered(pod).items() if one[0] in self._named) if self._named else ()
        found = self._known.get(named)
        if found is None:
            if len(self._known) >= _MOST_SHARED:
                self._known.clear()
            found = self._known[named] = self._make(self._numbers(dict(named)))
        return found

    def _numbers(self, named: Mapping[tuple[str, str], int]) -> Iterator[tuple[ServicePort, int]]:
        for port in self._ports:
            target = port.target_port
            number = named.get((target, port.protocol)) if isinstance(target, str) else target or 0
            if number is not None:
                yield port, number


def _numbered(pod: Pod) -> dict[tuple[str, str], int]:
    """The numbers of a pod's container ports by name and protocol; the first one of a name."""
    found: dict[tuple[str, str], int] = {}
    for container in _serving(pod):
        for port in container.ports:
            found.setdefault((port.name, port.protocol), port.container_port)
    return found


def _serving(pod: Pod) -> Iterable[Container]:
    """The containers, and the init containers that stay (sidecars)."""
    yield from pod.spec.containers
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            yield container


def slice_ports(found: Iterable[tuple[ServicePort, int]]) -> Ports:
    """The ports of slices, in order."""
    return ordered_slice_ports(
        tuple(SlicePort(port.name, port.protocol, number, port.app_protocol) for port, number in found)
    )


def ordered_slice_ports(ports: Ports) -> Ports:
    """The ports in upstream's order; two lists of the same ports are equal afterwards."""
    return tuple(sorted(ports, key=_slice_port_hash)) if len(ports) > 1 else ports


def ordered_ports(ports: tuple[EndpointPort, ...]) -> tuple[EndpointPort, ...]:
    """The ports of an Endpoints subset in upstream's order."""
    return tuple(sorted(ports, key=_port_hash)) if len(ports) > 1 else ports


@lru_cache(_MOST_HASHES)
def _slice_port_hash(port: SlicePort) -> int:
    fields = (
        f"Name:(*string){_pointer(port.name)} Protocol:(*v1.Protocol){_pointer(port.protocol)} "
        f"Port:(*int32){_pointer(port.port)} AppProtocol:(*string){_pointer(port.app_protocol)}"
    )
    return fnv128a(f"(v1.EndpointPort){{{fields}}}".encode())


@lru_cache(_MOST_HASHES)
def _port_hash(port: EndpointPort) -> int:
    fields = (
        f"Name:(string){port.name} Port:(int32){port.port} Protocol:(v1.Protocol){port.protocol} "
        f"AppProtocol:(*string){_pointer(port.app_protocol)}"
    )
    return fnv128a(f"(v1.EndpointPort){{{fields}}}".encode())


def _pointer(value: object) -> str:
    return "<nil>" if value is None else str(value)
