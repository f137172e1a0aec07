"""Allocates cluster IPs and node ports, before a Service is written.

The allocations are those of the stored Services, so that a deletion needs no release and a restart no repair, and those
of IPAddresses of other clients. A ``Reservation`` has the allocations of a request that are not stored yet.

They are made right before a Service is prepared and validated, and held until the request ends, also with an error.

No address and no port is in two Services. The same random source makes the same choices.
upstream: pkg/registry/core/service/{storage,ipallocator,portallocator}
"""

import ipaddress
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.addresses import can_allocate
from kcm_cli.sandbox.apiserver.errors import invalid, plain
from kcm_cli.sandbox.apiserver.kinds.core import service_families as families
from kcm_cli.sandbox.apiserver.registry.core import Around, Core, Write
from kcm_cli.sandbox.apiserver.store import AlreadyExists, Event
from kcm_cli.sandbox.apiserver.types import ApiError, Tree
from kcm_cli.sandbox.apiserver.validation import addresses, errors
from kcm_cli.sandbox.apiserver.validation.addresses import Network
from kcm_cli.sandbox.apiserver.validation.ports import needs_health_check

SERVICES = GVR("", "v1", "services")
_ADDRESSES = GVR("networking.k8s.io", "v1", "ipaddresses")
_RANGES = GVR("networking.k8s.io", "v1", "servicecidrs")
_ENDPOINTS = GVR("", "v1", "endpoints")
_ADDRESS_OWNER: Tree = {
    "manager": "kube-apiserver",
    "operation": "Update",
    "apiVersion": "networking.k8s.io/v1",
    "fieldsType": "FieldsV1",
    "fieldsV1": {
        "f:metadata": {
            "f:labels": {
                ".": {},
                "f:ipaddress.kubernetes.io/ip-family": {},
                "f:ipaddress.kubernetes.io/managed-by": {},
            }
        },
        "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
    },
}
_FIRST_PORT, _LAST_PORT = 30000, 32767
_OTHER_NETWORK = "the provided network does not match the current range"
_NO_RANGE = "the provided IP ({}) is not in the valid range. The range of valid IPs is {}"
_TAKEN_IP = "provided IP is already allocated"
_TAKEN_PORT = "provided port is already allocated"
_NOT_A_PORT = f"provided port is not in the valid range. The range of valid ports is {_FIRST_PORT}-{_LAST_PORT}"


class Reservation:
    """The allocations of one request, until its end."""

    def __init__(self, dry_run: bool) -> None:
        self.dry_run = dry_run
        self.ips: set[str] = set()
        self.ports: set[int] = set()
        self.highest = 0

    def hold(self, port: int) -> None:
        """Allocate a port."""
        self.ports.add(port)
        self.highest = max(self.highest, port)


class ServiceAllocator:
    """Allocates node ports, and addresses from the server's ranges (one per family, the cluster's default family first)
    and ServiceCIDRs."""

    def __init__(self, core: Core) -> None:
        self._store, self._own, self._random = core.store, core.own, core.random
        self._resource = core.catalog.info(SERVICES)
        self._default = [ipaddress.ip_network(text) for text in core.settings.service_ranges]
        self.families = tuple(_family(network) for network in self._default)
        self._ips: dict[str, str] = {}
        self._ports: dict[int, str] = {}
        self._pending: set[Reservation] = set()
        for stored in core.store.list(SERVICES):
            self._add(stored.key, stored.doc)
        core.store.subscribe(SERVICES, self._on_event)

    @asynccontextmanager
    async def around(self, write: Write) -> AsyncIterator[None]:
        """Set families, addresses and ports of a Service, and hold them until it is written. Those of a dry run are not
        held. Raises ApiError: 422, or 500 if a range is full."""
        spec, known = write.doc["spec"], None if write.old is None else write.old["spec"]
        if known is not None:
            families.patch_allocated(spec, known)
        families.normalize(spec, known)
        if found := families.init_families(spec, known, self.families):
            raise invalid(self._resource, write.doc["metadata"].get("name", ""), found)
        held = Reservation(write.dry_run)
        self._pending.add(held)
        try:
            self._cluster_ips(write.doc, known, held)
            self._node_ports(write.doc, known, held)
            if write.dry_run:
                self._pending.discard(held)
            yield
        finally:
            self._pending.discard(held)

    # Addresses

    def _cluster_ips(self, doc: Tree, known: Tree | None, held: Reservation) -> None:
        spec = doc["spec"]
        if not families.needs_cluster_ip(spec) or (spec.get("clusterIPs") or [""])[0] == "None":
            return
        wanted = spec.get("ipFamilies") or []
        kept = len((known or {}).get("clusterIPs") or ()) if known and families.needs_cluster_ip(known) else 0
        ips = list(spec.get("clusterIPs") or ())
        if kept >= len(wanted):
            return  # nothing to allocate; validation refuses invalid changes
        for index in range(kept, len(wanted)):
            ip = ips[index] if index < len(ips) else ""
            chosen = self._take_ip(doc, ip, held) if ip else self._next_ip(doc, wanted[index], held)
            ips[index:] = [chosen, *ips[index + 1 :]]
        spec["clusterIPs"] = ips
        if ips:
            spec["clusterIP"] = ips[0]

    def _take_ip(self, doc: Tree, text: str, held: Reservation) -> str:
        address = addresses.parse_ip(text)
        reason = ""
        if address is None or not any(can_allocate(network, address) for network in self._networks()):
            blocks = ",".join(str(network) for network in self._networks())
            reason = _NO_RANGE.format(text, blocks) if held.dry_run else _OTHER_NETWORK
        elif not held.dry_run and self._ip_taken(str(address)):
            reason = _TAKEN_IP
        if reason:
            detail = f"failed to allocate IP {text}: {reason}"
            error = errors.invalid("spec.clusterIPs", doc["spec"].get("clusterIPs"), detail)
            raise invalid(self._resource, doc["metadata"].get("name", ""), [error])
        held.ips.add(str(address))
        return text

    def _next_ip(self, doc: Tree, family: str, held: Reservation) -> str:
        for network in self._networks():
            if _family(network) == family:
                if held.dry_run:
                    return str(network.network_address)
                chosen = self._free_in(network)
                if chosen is not None:
                    held.ips.add(chosen)
                    return chosen
        name = doc["metadata"].get("name", "")
        text = f'failed to allocate a serviceIP for Service "{name}": range is full'
        raise ApiError(500, "InternalError", f"Internal error occurred: {text}")

    def _free_in(self, network: Network) -> str | None:
        """A free address, from the upper part of the range as long as it has one; None if the range is full."""
        first = 1
        last = network.num_addresses - (2 if network.version == 4 else 1)
        band = min(max(16, network.num_addresses // 16), 256) if last >= 16 else 0
        for low, high in ((first + band, last), (first, first + band - 1)):
            size = high - low + 1
            if size <= 0:
                continue
            start = self._random.randrange(size)
            for step in range(size):
                ip = str(network[low + (start + step) % size])
                if not self._ip_taken(ip):
                    return ip
        return None

    def _ip_taken(self, ip: str) -> bool:
        """Whether a Service has the address, or an IPAddress stands for it, of whatever client."""
        if ip in self._ips or any(ip in held.ips for held in self._pending):
            return True
        return self._store.get(_ADDRESSES, "", ip) is not None

    def _networks(self) -> list[Network]:
        """The ranges of ready ServiceCIDRs, after the server's own, which are usable also without a ServiceCIDR."""
        ready: dict[Network, bool] = {}
        for stored in self._store.list(_RANGES):
            doc: Tree = stored.doc
            for text in doc["spec"].get("cidrs") or ():
                network = ipaddress.ip_network(text)
                ready[network] = ready.get(network, False) or _ready(doc)
        own = [network for network in self._default if ready.get(network, True)]
        return own + [network for network, usable in ready.items() if usable and network not in self._default]

    # Ports of nodes

    def _node_ports(self, doc: Tree, known: Tree | None, held: Reservation) -> None:
        spec = doc["spec"]
        mine = families.node_ports((known or {}).get("ports") or [])
        if spec.get("type") in ("NodePort", "LoadBalancer"):
            if known is None:
                self._new_ports(doc, held)
            else:
                self._changed_ports(doc, mine, held)
        if needs_health_check(spec) and not (known is not None and needs_health_check(known)):
            self._health_port(spec, held)

    def _new_ports(self, doc: Tree, held: Reservation) -> None:
        """Two ports with one number (for TCP and UDP) share a node port."""
        spec = doc["spec"]
        by_port: dict[int, int] = {}
        ports = spec.get("ports") or []
        wanted = {port.get("port"): port["nodePort"] for port in reversed(ports) if port.get("nodePort")}
        for index, port in enumerate(ports):
            if not port.get("nodePort") and not families.needs_node_port(spec):
                continue
            number = port.get("port", 0)
            shared = by_port.get(number, 0)
            if not shared:
                asked = wanted.get(number, 0)
                shared = by_port[number] = asked or self._next_port(held)
                if asked:
                    self._take_port(doc, asked, index, held)
                port["nodePort"] = shared
            elif not port.get("nodePort"):
                port["nodePort"] = shared
            elif port["nodePort"] != shared:
                self._take_port(doc, port["nodePort"], index, held)

    def _changed_ports(self, doc: Tree, mine: set[int], held: Reservation) -> None:
        spec = doc["spec"]
        seen: set[tuple[str, int]] = set()
        for index, port in enumerate(spec.get("ports") or ()):
            wanted = port.get("nodePort", 0)
            if wanted:
                if wanted not in mine and wanted not in held.ports:
                    self._take_port(doc, wanted, index, held)
            elif families.needs_node_port(spec):
                port["nodePort"] = self._next_port(held)
            else:
                continue
            key = (port.get("protocol", ""), port["nodePort"])
            if key in seen:
                raise plain(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
            seen.add(key)

    def _health_port(self, spec: Tree, held: Reservation) -> None:
        wanted = spec.get("healthCheckNodePort", 0)
        if not wanted:
            spec["healthCheckNodePort"] = self._next_port(held)
        elif reason := self._port_refusal(wanted, held):
            text = f"failed to allocate requested HealthCheck NodePort {wanted}: {reason}"
            raise ApiError(500, "InternalError", f"Internal error occurred: {text}")
        else:
            held.hold(wanted)

    def _take_port(self, doc: Tree, port: int, index: int, held: Reservation) -> None:
        if reason := self._port_refusal(port, held):
            error = errors.invalid(f"spec.ports[{index}].nodePort", port, reason)
            raise invalid(self._resource, doc["metadata"].get("name", ""), [error])
        held.hold(port)

    def _port_refusal(self, port: int, held: Reservation) -> str:
        # upstream: in a dry run, portallocator/operation.go#Allocate checks only whether the port is allocated
        if not held.dry_run and not _FIRST_PORT <= port <= _LAST_PORT:
            return _NOT_A_PORT
        return _TAKEN_PORT if self._port_taken(port) else ""

    def _next_port(self, held: Reservation) -> int:
        if held.dry_run:
            port = (held.highest or _LAST_PORT + 1) + 1
            held.hold(port)
            return port
        size = _LAST_PORT - _FIRST_PORT + 1
        start = self._random.randrange(size)
        for step in range(size):
            port = _FIRST_PORT + (start + step) % size
            if not self._port_taken(port):
                held.hold(port)
                return port
        raise ApiError(500, "InternalError", "Internal error occurred: failed to allocate a nodePort: range is full")

    def _port_taken(self, port: int) -> bool:
        return port in self._ports or any(port in held.ports for held in self._pending)

    # What is in use

    def _on_event(self, event: Event) -> None:
        key = event.stored.key
        if event.previous is not None:
            self._remove(key, event.previous.doc)
        if event.type == "DELETED":
            self._remove(key, event.stored.doc)
            self._forget(event.stored.doc)
            return
        self._add(key, event.stored.doc)
        self._mirror(event.stored.doc, event.previous.doc if event.previous else None)

    def _add(self, key: str, doc: Tree) -> None:
        for ip in _ips(doc):
            self._ips[ip] = key
        for port in _ports(doc):
            self._ports[port] = key

    def _remove(self, key: str, doc: Tree) -> None:
        for ip in _ips(doc):
            if self._ips.get(ip) == key:
                del self._ips[ip]
        for port in _ports(doc):
            if self._ports.get(port) == key:
                del self._ports[port]

    def _mirror(self, doc: Tree, before: Tree | None) -> None:
        """Create and delete IPAddress objects, one per address, as upstream's allocator does."""
        known, current = set(_ips(before) if before else ()), set(_ips(doc))
        for ip in sorted(current - known):
            try:
                self._store.create(_ADDRESSES, "", ip, self._address_doc(ip, doc["metadata"]))
            except AlreadyExists:
                continue
        for ip in sorted(known - current):
            self._drop(_ADDRESSES, "", ip)

    def _address_doc(self, ip: str, meta: Tree) -> Tree:
        network = ipaddress.ip_address(ip)
        labels = {
            "ipaddress.kubernetes.io/ip-family": f"IPv{network.version}",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }
        uid = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        made = meta.get("creationTimestamp")
        own = {"name": ip, "uid": uid, "creationTimestamp": made, "labels": labels}
        own["managedFields"] = [{**_ADDRESS_OWNER, "time": made}]
        parent = {"resource": "services", "namespace": meta.get("namespace", ""), "name": meta.get("name", "")}
        return {
            "kind": "IPAddress",
            "apiVersion": "networking.k8s.io/v1",
            "metadata": own,
            "spec": {"parentRef": parent},
        }

    def _forget(self, doc: Tree) -> None:
        for ip in sorted(_ips(doc)):
            self._drop(_ADDRESSES, "", ip)
        # upstream: pkg/registry/core/service/storage/storage.go#afterDelete
        meta = doc["metadata"]
        self._drop(_ENDPOINTS, meta.get("namespace", ""), meta.get("name", ""))

    def _drop(self, gvr: GVR, namespace: str, name: str) -> None:
        if (stored := self._store.get(gvr, namespace, name)) is not None:
            self._own.retire(gvr, stored)


def _family(network: Network) -> str:
    return f"IPv{network.version}"


def _ready(doc: Tree) -> bool:
    """Whether it is neither being deleted nor marked as not ready. Without its controller it has no condition.

    upstream: pkg/registry/core/service/ipallocator/cidrallocator.go#isReady
    """
    if doc["metadata"].get("deletionTimestamp"):
        return False
    conditions = (doc.get("status") or {}).get("conditions") or ()
    return all(item.get("status") == "True" for item in conditions if item.get("type") == "Ready")


def _ips(doc: Tree) -> Iterable[str]:
    spec = doc.get("spec") or {}
    ips = spec.get("clusterIPs") if families.needs_cluster_ip(spec) else None
    return [ip for ip in ips or () if ip not in ("", "None")]


def _ports(doc: Tree) -> Iterable[int]:
    spec = doc.get("spec") or {}
    found = families.node_ports(spec.get("ports") or [])
    if needs_health_check(spec) and spec.get("healthCheckNodePort"):
        found.add(spec["healthCheckNodePort"])
    return found


def around(core: Core) -> Around:
    """The allocations of a server."""
    return ServiceAllocator(core).around
