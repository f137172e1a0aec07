"""A simulated node: its addresses, and its Node and Lease documents.

Node number N has the pod CIDR 10.244.N.0/24 and the address 172.18.0.2 + N (see ``networks``).

upstream: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from ipaddress import IPv4Network
from uuid import NAMESPACE_URL, uuid5

import msgspec

from kcm_cli.api.well_known import HOSTNAME, LEASE_NAMESPACE
from kcm_cli.component.version import GIT_VERSION
from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.names import is_native_resource
from kcm_cli.sandbox import networks

SIMULATED = "sandbox.kcm.dev/simulated"
FAILED = "sandbox.kcm.dev/failed"
CAPACITY = "sandbox.kcm.dev/capacity"
PRESSURE = "sandbox.kcm.dev/pressure"
LEASE_DURATION_S = 40
KUBELET_PORT = 10250
ZONES = ("zone-a", "zone-b", "zone-c")
REGION = "sandbox"
KERNEL = "6.12.0-simulated"


class Shape(msgspec.Struct, frozen=True):
    """A node's size, as quantities."""

    cpu: str = "32"
    memory: str = "256Gi"
    storage: str = "1Ti"
    pods: str = "110"

    def resources(self) -> dict[str, str]:
        return {
            "cpu": self.cpu,
            "ephemeral-storage": self.storage,
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "memory": self.memory,
            "pods": self.pods,
        }


DEFAULT_SHAPE = Shape()


def capacity(annotations: Mapping[str, str]) -> dict[str, str]:
    """The capacity in a Node's annotation, such as ``cpu=8,memory=16Gi,pods=250,example.com/gpu=2``, over the default.

    Parts without a valid quantity are ignored.
    """
    sizes = _sizes(annotations.get(CAPACITY, ""))
    return {**DEFAULT_SHAPE.resources(), **{name: text for _, name, text in sizes if name}}


def unreadable(sizes: str) -> list[str]:
    """The parts of such an annotation that are ignored."""
    return [part for part, name, _ in _sizes(sizes) if not name]


def _sizes(text: str) -> Iterator[tuple[str, str, str]]:
    """Each part with its resource and quantity, which are empty if it is invalid."""
    for part in (part.strip() for part in text.split(",") if part.strip()):
        name, _, size = part.partition("=")
        yield (part, name, size) if name and _is_size(name, size) else (part, "", "")


def _is_size(name: str, size: str) -> bool:
    """Whether an API server accepts this in the status of a node, which would never be ready with another one."""
    if not quantity.is_quantity(size) or quantity.parse(size).sign < 0:
        return False
    is_counted = name == "pods" or not is_native_resource(name)
    return not is_counted or quantity.is_whole(size)


def pod_network(number: int) -> str:
    """The pod CIDR of node ``number``. Raises ValueError beyond the last one."""
    return str(networks.pods_of(number))


def spare_network(number: int) -> str:
    """Additional addresses for the pods of node ``number``."""
    return str(networks.spare_of(number))


def number_of(network: str) -> int | None:
    """The number of the node with this pod CIDR; None if there is none."""
    try:
        parsed = IPv4Network(network)
    except ValueError:
        return None
    return networks.node_of(parsed)


def network_of(ranges: Iterable[str], number: int) -> str:
    """The pod CIDR of a node: the first IPv4 one among its ``podCIDRs`` (``ranges``), or that of its number."""
    return next((text for text in ranges if ":" not in text), pod_network(number))


def host_address(number: int) -> str:
    return str(networks.FIRST_HOST + number)


def node_doc(name: str, number: int, *, ranged: bool = True) -> Doc:
    """The Node as it is registered. ranged: with its pod CIDR."""
    network = pod_network(number)
    spec: Doc = {"podCIDR": network, "podCIDRs": [network]} if ranged else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels(name, number), "annotations": {**ANNOTATIONS, SIMULATED: "true"}},
        "spec": spec,
    }


ANNOTATIONS = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}


def labels(name: str, number: int) -> dict[str, str]:
    """The labels that a kubelet gives to its node."""
    return {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "simulated",
        "topology.kubernetes.io/region": REGION,
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
    }


_DECLARED = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
]
"""The ``declaredFeatures`` of a kubelet of this version."""

REASONS = {
    "MemoryPressure=True": "NodeHasInsufficientMemory",
    "MemoryPressure=False": "NodeHasSufficientMemory",
    "DiskPressure=True": "NodeHasDiskPressure",
    "DiskPressure=False": "NodeHasNoDiskPressure",
    "PIDPressure=True": "NodeHasInsufficientPID",
    "PIDPressure=False": "NodeHasSufficientPID",
    "Ready=True": "NodeReady",
}
"""The reasons of Events about new conditions."""

MEMORY_PRESSURE = "MemoryPressure"
_PRESSURES = {"memory": MEMORY_PRESSURE, "disk": "DiskPressure", "pid": "PIDPressure"}
_UNDER_PRESSURE = (
    (MEMORY_PRESSURE, "True", "KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure"),
    ("PIDPressure", "True", "KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
)
_CONDITIONS = (
    (MEMORY_PRESSURE, "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def pressures(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """The pressure conditions for a node's annotation, such as ``memory,disk``."""
    words = {word.strip() for word in annotations.get(PRESSURE, "").split(",")}
    return tuple(type_ for word, type_ in _PRESSURES.items() if word in words)


def conditions(pressures: Collection[str], since: Mapping[str, str], time: str) -> list[Doc]:
    """The conditions of a ready node at ``time``. ``since``: transition times of present ones, by ``TYPE=STATUS``."""
    pressed = (each for each in _UNDER_PRESSURE if each[0] in pressures)
    return [
        {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": time,
            "lastTransitionTime": since.get(f"{type_}={status}", time),
        }
        for type_, status, reason, message in (*pressed, *(c for c in _CONDITIONS if c[0] not in pressures))
    ]


def status_doc(name: str, number: int, resources: dict[str, str], conditions: list[Doc]) -> Doc:
    """The status of a node with these conditions."""
    return {
        "addresses": [
            {"type": "InternalIP", "address": host_address(number)},
            {"type": "Hostname", "address": name},
        ],
        "allocatable": resources,
        "capacity": resources,
        "conditions": list(conditions),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "declaredFeatures": _DECLARED,
        "features": {"supplementalGroupsPolicy": True},
        "nodeInfo": _info(name),
        "runtimeHandlers": [{"name": "", "features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}}],
    }


def _info(name: str) -> Doc:
    machine = sha256(name.encode()).hexdigest()[:32]
    return {
        "architecture": "amd64",
        "bootID": str(uuid5(NAMESPACE_URL, f"boot/{name}")),
        "containerRuntimeVersion": "containerd://2.2.1",
        "kernelVersion": KERNEL,
        "kubeProxyVersion": "",
        "kubeletVersion": GIT_VERSION,
        "machineID": machine,
        "operatingSystem": "linux",
        "osImage": "kcm sandbox (simulated)",
        "systemUUID": str(uuid5(NAMESPACE_URL, f"system/{name}")),
    }


def lease_doc(name: str, uid: str, time: str) -> Doc:
    """The Lease that a kubelet renews."""
    owner: Doc = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_DURATION_S, "renewTime": time},
    }
