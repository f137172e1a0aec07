"""What the scheduler knows of the cluster: nodes with the pods on them, and what these use.

Kept by the shell from informers and assumptions; deciding only reads it. ``NodeInfo.copy`` and
``ClusterState.with_node`` give hypothetical states at the cost of one node.

upstream: pkg/scheduler/framework/types.go#NodeInfo, pkg/scheduler/backend/cache
"""

from collections.abc import Iterable, Mapping

from kcm_cli.sandbox.scheduler import requests
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, Port
from kcm_cli.sandbox.scheduler.requests import CPU, MEMORY, PODS, Amounts
from kcm_cli.sandbox.views import SimulatedNode

NO_LABELS: Mapping[str, str] = {}


class NodeInfo:
    """A node, its pods by key, and sums over them."""

    __slots__ = (
        "allocatable",
        "labels",
        "name",
        "node",
        "owners",
        "pods",
        "ports",
        "requested",
        "room",
        "usual",
        "with_affinity",
        "with_anti_affinity",
    )

    def __init__(self, node: SimulatedNode) -> None:
        self.pods: dict[str, PodInfo] = {}
        self.with_affinity: dict[str, PodInfo] = {}
        self.with_anti_affinity: dict[str, PodInfo] = {}
        self.requested: Amounts = {}
        self.usual: Amounts = {CPU: 0, MEMORY: 0}
        self.ports: set[Port] = set()
        self.owners: dict[str, int] = {}
        self.set_node(node)

    def set_node(self, node: SimulatedNode) -> None:
        """Replace the Node itself."""
        self.node = node
        self.name = node.name
        self.labels = node.labels
        self.allocatable = requests.amounts(node.status.allocatable)
        self.room = self.allocatable.get(PODS, 0)

    def add(self, info: PodInfo) -> None:
        key = info.key
        if key in self.pods:
            self.remove(key)
        self.pods[key] = info
        if info.has_affinity:
            self.with_affinity[key] = info
            if info.anti_affinity:
                self.with_anti_affinity[key] = info
        self.ports.update(info.ports)
        self._count(info, 1)

    def remove(self, key: str) -> PodInfo | None:
        info = self.pods.pop(key, None)
        if info is None:
            return None
        self.with_affinity.pop(key, None)
        self.with_anti_affinity.pop(key, None)
        self._count(info, -1)
        if info.ports:
            self.ports = {port for other in self.pods.values() for port in other.ports}
        return info

    def copy(self) -> "NodeInfo":
        """A copy that can be changed without this one changing."""
        other = NodeInfo.__new__(NodeInfo)
        other.node, other.name, other.labels = self.node, self.name, self.labels
        other.allocatable, other.room = self.allocatable, self.room
        other.pods = dict(self.pods)
        other.with_affinity = dict(self.with_affinity)
        other.with_anti_affinity = dict(self.with_anti_affinity)
        other.requested, other.usual = dict(self.requested), dict(self.usual)
        other.ports = set(self.ports)
        other.owners = dict(self.owners)
        return other

    def _count(self, info: PodInfo, sign: int) -> None:
        requested = self.requested
        for name, amount in info.requests.items():
            requested[name] = requested.get(name, 0) + sign * amount
        usual = self.usual
        for name in (CPU, MEMORY):
            usual[name] += sign * info.usual[name]
        if info.owner:
            self.owners[info.owner] = self.owners.get(info.owner, 0) + sign


class ClusterState:
    """All nodes. ``namespaces`` has the labels of namespaces, ``nominated`` the pods that await their victims' end."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.namespaces: dict[str, Mapping[str, str]] = {}
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        self._placed: dict[str, str] = {}
        self._waiting: dict[str, dict[str, PodInfo]] = {}

    def set_node(self, node: SimulatedNode) -> None:
        """Add or replace a node; pods that were seen before it are put on it."""
        known = self.nodes.get(node.name)
        if known is not None:
            known.set_node(node)
            return
        info = self.nodes[node.name] = NodeInfo(node)
        for pod in self._waiting.pop(node.name, {}).values():
            info.add(pod)

    def remove_node(self, name: str) -> None:
        """Forget a node; its pods are kept for when it comes back."""
        info = self.nodes.pop(name, None)
        if info is not None and info.pods:
            self._waiting[name] = info.pods

    def place(self, info: PodInfo, node: str) -> None:
        """Put a pod on a node, and off any other."""
        if self._placed.get(info.key, node) != node:
            self.take_off(info.key)
        self._placed[info.key] = node
        on = self.nodes.get(node)
        if on is not None:
            on.add(info)
        else:
            self._waiting.setdefault(node, {})[info.key] = info

    def take_off(self, key: str) -> bool:
        """Take a pod off its node; whether it was on one."""
        node = self._placed.pop(key, None)
        if node is None:
            return False
        on = self.nodes.get(node)
        if on is not None:
            on.remove(key)
        else:
            self._waiting.get(node, {}).pop(key, None)
        return True

    def node_of(self, key: str) -> str | None:
        """The node on which a pod is, or is assumed to be."""
        return self._placed.get(key)

    def nominate(self, info: PodInfo, node: str) -> None:
        """Reserve a place on a node for a pod, instead of any other place."""
        self.forget_nomination(info.key)
        if node:
            self.nominated.setdefault(node, {})[info.key] = info

    def forget_nomination(self, key: str) -> None:
        for node, pods in list(self.nominated.items()):
            if pods.pop(key, None) is not None and not pods:
                del self.nominated[node]

    def labels_of_namespace(self, name: str) -> Mapping[str, str]:
        return self.namespaces.get(name, NO_LABELS)

    def with_node(self, info: NodeInfo) -> "ClusterState":
        """The same state with another version of one node."""
        other = ClusterState.__new__(ClusterState)
        other.nodes = {**self.nodes, info.name: info}
        other.namespaces, other.nominated = self.namespaces, self.nominated
        other._placed, other._waiting = self._placed, self._waiting
        return other

    def all(self) -> Iterable[NodeInfo]:
        return self.nodes.values()
