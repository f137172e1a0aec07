"""Pods as addresses of Endpoints: one address each, of the Service's first family.

upstream: pkg/controller/endpoint/endpoints_controller.go#podToEndpointAddressForService, syncService
"""

from kcm_cli.api.core import ObjectReference, Pod, Service
from kcm_cli.api.discovery import IPV4, IPV6
from kcm_cli.api.endpoints import EndpointAddress, EndpointPort
from kcm_cli.controllers.endpoints.snapshot import Member, Snapshot
from kcm_cli.planning.endpoints.addresses import is_ipv6, parse
from kcm_cli.planning.endpoints.pods import belongs, published_hostname
from kcm_cli.planning.endpoints.ports import NO_CLUSTER_IP, find_port, has_cluster_ip
from kcm_cli.planning.endpoints.subsets import Packer, Subsets
from kcm_cli.planning.pods import is_ready


def subsets_of(snapshot: Snapshot) -> Subsets:
    """The subsets that the pods make. A headless Service may have no ports; another without any has no subsets."""
    service, memo = snapshot.service, snapshot.memo
    packer = Packer()
    publishes_all = service.spec.publish_not_ready_addresses

    def make(pod: Pod, _: str | None) -> Member:
        return _address(service, pod), _ports(service, pod)

    memo.start(service)
    for pod in snapshot.pods:
        if not belongs(pod, terminating=publishes_all):
            continue
        address, ports = memo.get(pod, None, make)
        if address is not None:
            packer.add(address, ports, ready=publishes_all or is_ready(pod))
    return packer.subsets()


def _ports(service: Service, pod: Pod) -> tuple[EndpointPort | None, ...]:
    if not service.spec.ports:
        return (None,) if service.spec.cluster_ip == NO_CLUSTER_IP else ()
    found = []
    for port in service.spec.ports:
        number = find_port(pod, port)
        if number is not None:
            found.append(EndpointPort(port.name, number, port.protocol, port.app_protocol))
    return tuple(found)


def _address(service: Service, pod: Pod) -> EndpointAddress | None:
    """None for a pod without an address of the family, as there are while a cluster becomes dual-stack."""
    family = _family(service, pod)
    parsed = (parse(ip.ip) for ip in pod.status.pod_ips)
    ip = next((address.text for address in parsed if address is not None and address.type == family), None)
    if ip is None:
        return None
    meta = pod.metadata
    target = ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)
    return EndpointAddress(ip, published_hostname(pod, service), pod.spec.node_name, target)


def _family(service: Service, pod: Pod) -> str:
    """The Service's first family; guessed from its address, or the pod's, where it does not say."""
    spec = service.spec
    if spec.ip_families:
        return spec.ip_families[0]
    known = spec.cluster_ip if has_cluster_ip(service) else pod.status.pod_ip
    return IPV6 if is_ipv6(known) else IPV4
