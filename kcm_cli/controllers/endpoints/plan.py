"""Decides whether the Endpoints of a Service are created, updated or kept.

Each pod is one address of the Service's first IP family. Endpoints hold up to 1,000 addresses. Beyond that, ready
addresses take precedence, and subsets are truncated in proportion.

upstream: pkg/controller/endpoint/endpoints_controller.go#syncService, podToEndpointAddressForService, truncateEndpoints
"""

import math
from collections.abc import Mapping

import msgspec

from kcm_cli.api.core import ObjectReference, Pod, Service
from kcm_cli.api.discovery import IPV4, IPV6
from kcm_cli.api.endpoints import ENDPOINTS, EndpointAddress, EndpointPort, Endpoints
from kcm_cli.api.well_known import HEADLESS
from kcm_cli.machinery.addresses import is_ipv6
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Create, EventRef, Notice, Path, Update, Value, ref_to
from kcm_cli.planning.endpoints.addresses import parse
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.pods import published_hostname, should_be_in_endpoints
from kcm_cli.planning.endpoints.ports import NO_CLUSTER_IP, PodPorts, has_cluster_ip
from kcm_cli.planning.endpoints.slices import without
from kcm_cli.planning.endpoints.subsets import Packer, Subsets, repack
from kcm_cli.planning.endpoints.trigger_time import annotated
from kcm_cli.planning.pods import is_ready

MANAGER = "endpoint-controller"
MANAGED_BY = "endpoints.kubernetes.io/managed-by"
OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_TRUNCATED = "truncated"

Served = tuple[EndpointPort | None, ...]
Member = tuple[EndpointAddress | None, Served]
"""A pod's address (None: it has none of the Service's family), and its ports (one None: it needs none)."""


class Snapshot(msgspec.Struct, frozen=True):
    """A Service, the pods that it selects, its Endpoints, and the trigger time (RFC 3339).

    memo: results for the pods from the last sync.
    """

    service: Service
    pods: tuple[Pod, ...]
    endpoints: Endpoints | None
    trigger_time: str = ""
    memo: Memo[Member, PodPorts[Served]] = msgspec.field(default_factory=lambda: new_memo())


def plan(snapshot: Snapshot) -> Create | Update | None:
    """The write that is needed, or None."""
    wanted = subsets_of(snapshot)
    existing = snapshot.endpoints
    if existing is None:
        return _creation(snapshot, wanted)
    if _as_wanted(existing, snapshot.service, wanted):
        return None
    service = snapshot.service
    changes: dict[Path, Value] = {
        ("metadata", "labels"): _labels(service),
        ("metadata", "annotations"): _annotations(existing.annotations, snapshot, wanted),
        ("subsets",): truncated(wanted),
    }
    text = f"Failed to update endpoint {service.key}: {{error}}"
    failed = Notice(ref_to(ENDPOINTS, existing), "Warning", "FailedToUpdateEndpoint", text)
    return Update(ENDPOINTS, existing, changes, failed=failed, reason="endpoints changed")


def _creation(snapshot: Snapshot, wanted: Subsets) -> Create:
    service = snapshot.service
    metadata: Doc = {"name": service.name, "namespace": service.namespace, "labels": _labels(service)}
    annotations = _annotations({}, snapshot, wanted)
    if annotations:
        metadata["annotations"] = annotations
    body: Doc = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "metadata": metadata}
    if wanted:
        body["subsets"] = truncated(wanted)
    ref = EventRef(ENDPOINTS.api_version, ENDPOINTS.kind, service.namespace, service.name, "")
    text = f"Failed to create endpoint for service {service.key}: {{error}}"
    failed = Notice(ref, "Warning", "FailedToCreateEndpoint", text)
    return Create(ENDPOINTS, service.namespace, body, failed=failed, reason="service has no Endpoints")


def _as_wanted(existing: Endpoints, service: Service, wanted: Subsets) -> bool:
    """Whether subsets (in any layout), labels and the over-capacity annotation are right."""
    over = size(wanted) > CAPACITY
    said = existing.annotations.get(OVER_CAPACITY)
    if said != (_TRUNCATED if over else None):
        return False
    if existing.labels.get(MANAGED_BY) != MANAGER:
        return False
    if without(existing.labels, HEADLESS, MANAGED_BY) != without(service.labels, HEADLESS, MANAGED_BY):
        return False
    shown = existing.subsets
    if over:
        wanted = repack(truncated(wanted))
    return shown == wanted or repack(shown) == wanted


def _labels(service: Service) -> dict[str, str]:
    """The Service's labels and those of the controller."""
    labels = without(service.labels, HEADLESS)
    if not has_cluster_ip(service):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = MANAGER
    return labels


def _annotations(current: Mapping[str, str], snapshot: Snapshot, wanted: Subsets) -> dict[str, str]:
    annotations = annotated(without(current, OVER_CAPACITY), snapshot.trigger_time)
    if size(wanted) > CAPACITY:
        annotations[OVER_CAPACITY] = _TRUNCATED
    return annotations


def subsets_of(snapshot: Snapshot) -> Subsets:
    """The subsets of the pods. A headless Service may have no ports; any other Service without ports has no subsets."""
    service, memo = snapshot.service, snapshot.memo
    packer, ports = Packer(), memo.start(service)
    publishes_all = service.spec.publish_not_ready_addresses

    def make(pod: Pod, _: str | None) -> Member:
        return _address(service, pod), ports.of(pod)

    for pod in snapshot.pods:
        if not should_be_in_endpoints(pod, terminating=publishes_all):
            continue
        address, served = memo.get(pod, None, make)
        if address is not None:
            packer.add(address, served, ready=publishes_all or is_ready(pod))
    return packer.subsets()


def _ports_of(service: Service) -> PodPorts[Served]:
    """Without ports, pods serve on None if the Service is headless, else on nothing."""
    if not service.spec.ports:
        none: Served = (None,) if service.spec.cluster_ip == NO_CLUSTER_IP else ()
        return PodPorts(service, lambda found: none)
    return PodPorts(
        service,
        lambda found: tuple(
            EndpointPort(port.name, number, port.protocol, port.app_protocol) for port, number in found
        ),
    )


def new_memo() -> Memo[Member, PodPorts[Served]]:
    """What the syncs of one Service share."""
    return Memo(_ports_of)


def _address(service: Service, pod: Pod) -> EndpointAddress | None:
    """The pod's address in the Service's family; None if it has none, which happens while a cluster becomes
    dual-stack."""
    family = _family(service, pod)
    parsed = (parse(ip.ip) for ip in pod.status.pod_ips)
    ip = next((address.text for address in parsed if address is not None and address.type == family), None)
    if ip is None:
        return None
    meta = pod.metadata
    target = ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)
    return EndpointAddress(ip, published_hostname(pod, service), pod.spec.node_name, target)


def _family(service: Service, pod: Pod) -> str:
    """The Service's first IP family; if it has none, derived from its cluster IP or the pod's IP."""
    spec = service.spec
    if spec.ip_families:
        return spec.ip_families[0]
    known = spec.cluster_ip if has_cluster_ip(service) else pod.status.pod_ip
    return IPV6 if is_ipv6(known) else IPV4


CAPACITY = 1000


def size(subsets: Subsets) -> int:
    """The number of addresses, ready or not."""
    return sum(len(subset.addresses) + len(subset.not_ready_addresses) for subset in subsets)


def truncated(subsets: Subsets) -> Subsets:
    """The subsets with as many addresses as fit. The API server refuses empty ones: they are left out."""
    if size(subsets) <= CAPACITY:
        return subsets
    ready = sum(len(subset.addresses) for subset in subsets)
    room = max(CAPACITY - ready, 0)
    shares = zip(
        subsets,
        _shares([len(subset.addresses) for subset in subsets], CAPACITY - room),
        _shares([len(subset.not_ready_addresses) for subset in subsets], room),
        strict=True,
    )
    fitting = (
        msgspec.structs.replace(
            subset, addresses=subset.addresses[:first], not_ready_addresses=subset.not_ready_addresses[:second]
        )
        for subset, first, second in shares
    )
    return tuple(subset for subset in fitting if subset.addresses or subset.not_ready_addresses)


def _shares(counts: list[int], room: int) -> list[int]:
    """The room, divided in proportion; each share is rounded up while there is room."""
    total, left, shares = sum(counts) or 1, room, []
    for count in counts:
        share = min(math.ceil(count / total * room), left)
        shares.append(share)
        left -= min(share, count)
    return shares
