"""Finds the pod's port for a Service's port, and puts ports in order.

Ports are sorted by a hash of their Go dump, as upstream: lists that kube-controller-manager wrote are not written
again.

upstream: staging/src/k8s.io/endpointslice/utils.go#FindPort, util/controller_utils.go#NewPortMapKey,
pkg/api/v1/endpoints/util.go#portsByHash
"""

from collections.abc import Iterable
from functools import lru_cache

from kcm_cli.api.core import Container, Pod, Service, ServicePort
from kcm_cli.api.discovery import SlicePort
from kcm_cli.api.endpoints import EndpointPort
from kcm_cli.machinery.hashes import fnv128a

NO_CLUSTER_IP = "None"
Ports = tuple[SlicePort, ...]


def has_cluster_ip(service: Service) -> bool:
    return service.spec.cluster_ip not in ("", NO_CLUSTER_IP)


def find_port(pod: Pod, port: ServicePort) -> int | None:
    """The number of the target port, or of the container port with its name."""
    target = port.target_port
    if not isinstance(target, str):
        return target or 0
    for container in _serving(pod):
        for candidate in container.ports:
            if candidate.name == target and candidate.protocol == port.protocol:
                return candidate.container_port
    return None


def _serving(pod: Pod) -> Iterable[Container]:
    """The containers, and the init containers that stay (sidecars)."""
    yield from pod.spec.containers
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            yield container


def slice_ports(service: Service, pod: Pod) -> Ports:
    """The ports of the pod's slices, in order."""
    numbers = tuple(find_port(pod, port) for port in service.spec.ports)
    return _slice_ports(service.spec.ports, numbers)


@lru_cache(maxsize=4096)
def _slice_ports(ports: tuple[ServicePort, ...], numbers: tuple[int | None, ...]) -> Ports:
    found = []
    for port, number in zip(ports, numbers, strict=True):
        if number is not None:
            found.append(SlicePort(port.name, port.protocol, number, port.app_protocol))
    return ordered_slice_ports(tuple(found))


@lru_cache(maxsize=4096)
def ordered_slice_ports(ports: Ports) -> Ports:
    """The ports in upstream's order; two lists of the same ports are equal afterwards."""
    return tuple(sorted(ports, key=_slice_port_hash)) if len(ports) > 1 else ports


@lru_cache(maxsize=4096)
def ordered_ports(ports: tuple[EndpointPort, ...]) -> tuple[EndpointPort, ...]:
    """The ports of an Endpoints subset in upstream's order."""
    return tuple(sorted(ports, key=_port_hash)) if len(ports) > 1 else ports


def _slice_port_hash(port: SlicePort) -> int:
    fields = (
        f"Name:(*string){_pointer(port.name)} Protocol:(*v1.Protocol){_pointer(port.protocol)} "
        f"Port:(*int32){_pointer(port.port)} AppProtocol:(*string){_pointer(port.app_protocol)}"
    )
    return fnv128a(f"(v1.EndpointPort){{{fields}}}".encode())


def _port_hash(port: EndpointPort) -> int:
    fields = (
        f"Name:(string){port.name} Port:(int32){port.port} Protocol:(v1.Protocol){port.protocol} "
        f"AppProtocol:(*string){_pointer(port.app_protocol)}"
    )
    return fnv128a(f"(v1.EndpointPort){{{fields}}}".encode())


def _pointer(value: object) -> str:
    return "<nil>" if value is None else str(value)
