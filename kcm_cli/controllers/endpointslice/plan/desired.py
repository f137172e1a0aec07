"""The desired endpoints of a Service by address type and ports, and the labels of its slices.

The labels are those of the Service and three of the controller.

upstream: staging/src/k8s.io/endpointslice/utils.go#podToEndpoint, setEndpointSliceLabels,
reconciler.go#reconcileByAddressType
"""

from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import Node, ObjectReference, Pod, Service
from kcm_cli.api.discovery import IPV4, IPV6, MANAGED_BY, SERVICE_NAME, Endpoint, EndpointConditions, EndpointSlice
from kcm_cli.api.well_known import HEADLESS, ZONE
from kcm_cli.machinery.addresses import is_ipv6
from kcm_cli.planning.endpoints.addresses import parse
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.pods import published_hostname, should_be_in_endpoints
from kcm_cli.planning.endpoints.ports import PodPorts, Ports, has_cluster_ip, slice_ports
from kcm_cli.planning.endpoints.slices import Identity, identity, without
from kcm_cli.planning.pods import is_ready

MANAGER = "endpointslice-controller.k8s.io"
_RESERVED = (MANAGED_BY, SERVICE_NAME, HEADLESS)


class Member(msgspec.Struct, frozen=True):
    """A pod as an endpoint of one address type, and the ports of its slice."""

    ports: Ports
    identity: Identity
    endpoint: Endpoint


class Snapshot(msgspec.Struct, frozen=True):
    """A Service, the pods that it selects, their nodes as far as known, and its slices.

    ratios: each zone's share of the CPUs; None if that is unknown, there are fewer than two zones, or the Service wants
    no topology hints. hinted: whether the last sync set topology hints. prefer_same: whether the gate for
    PreferSameZone and PreferSameNode is on. trigger_time: RFC 3339, or empty. memo: results for the pods from the last
    sync, for one address type.
    """

    service: Service
    pods: tuple[Pod, ...]
    nodes: Mapping[str, Node]
    slices: tuple[EndpointSlice, ...]
    max_per_slice: int
    trigger_time: str = ""
    ratios: Mapping[str, float] | None = None
    hinted: bool = False
    prefer_same: bool = True
    memo: Memo[Member, PodPorts[Ports]] = msgspec.field(default_factory=lambda: new_memo())


def new_memo() -> Memo[Member, PodPorts[Ports]]:
    """What the syncs of one address type of a Service share."""
    return Memo(lambda service: PodPorts(service, slice_ports))


def slice_labels(service: Service) -> dict[str, str]:
    """The desired labels of a Service's slices."""
    labels = without(service.labels, *_RESERVED)
    if not has_cluster_ip(service):
        labels[HEADLESS] = ""
    labels[SERVICE_NAME] = service.name
    labels[MANAGED_BY] = MANAGER
    return labels


def outdated(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether labels other than the reserved ones differ from the desired ones."""
    return without(labels, *_RESERVED) != without(wanted, *_RESERVED)


_CONDITIONS = {
    (ready, serving, terminating): EndpointConditions(ready, serving, terminating)
    for ready in (False, True)
    for serving in (False, True)
    for terminating in (False, True)
}

Group = dict[Identity, Endpoint]


class Desired(msgspec.Struct):
    """Endpoints by ports (a group may be empty), and pods that are left out because their node is unknown."""

    groups: dict[Ports, Group] = msgspec.field(default_factory=dict)
    unplaced: list[str] = msgspec.field(default_factory=list)


def address_types(service: Service) -> tuple[str, ...]:
    """The address types of a Service's slices: its IP families; derived from its cluster IP if it has none."""
    found = tuple(family for family in (IPV4, IPV6) if family in service.spec.ip_families)
    if found:
        return found
    if has_cluster_ip(service):
        return (IPV6,) if is_ipv6(service.spec.cluster_ip) else (IPV4,)
    return IPV4, IPV6


def desired(snapshot: Snapshot, address_type: str) -> Desired:
    """The desired endpoints of one address type."""
    service, memo, result = snapshot.service, snapshot.memo, Desired()
    ports = memo.start(service)
    publishes_all = service.spec.publish_not_ready_addresses
    zones: dict[str, str | None] = {name: node.labels.get(ZONE) or "" for name, node in snapshot.nodes.items()}
    groups: dict[int, tuple[Ports, Group]] = {}  # by the id of the ports: thousands of them are not hashed for each pod

    def make(pod: Pod, zone: str | None) -> Member:
        endpoint = endpoint_of(pod, zone or "", service, address_type)
        return Member(ports.of(pod), identity(endpoint), endpoint)

    for pod in snapshot.pods:
        if not should_be_in_endpoints(pod, terminating=True):
            continue
        zone = zones.get(pod.spec.node_name)
        member = memo.get(pod, zone, make)
        served = member.ports
        _, group = groups.get(id(served)) or groups.setdefault(
            id(served), (served, result.groups.setdefault(served, {}))
        )
        if zone is None and not publishes_all:
            result.unplaced.append(_unplaced(service, pod))
        elif member.endpoint.addresses:
            group[member.identity] = member.endpoint
    return result


def endpoint_of(pod: Pod, zone: str, service: Service, address_type: str) -> Endpoint:
    """The endpoint of a pod; without addresses if the pod has none of this type."""
    serving, terminating = is_ready(pod), pod.deleting
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    meta = pod.metadata
    return Endpoint(
        _addresses(pod, address_type),
        _CONDITIONS[(ready, serving, terminating)],
        published_hostname(pod, service) or None,
        ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
        pod.spec.node_name or None,
        zone or None,
    )


def _addresses(pod: Pod, address_type: str) -> tuple[str, ...]:
    found = [parse(ip.ip) for ip in pod.status.pod_ips]
    return tuple(address.text for address in found if address is not None and address.type == address_type)


def _unplaced(service: Service, pod: Pod) -> str:
    return f"skipping Pod {pod.name} for Service {service.key}: Node {pod.spec.node_name} Not Found"
