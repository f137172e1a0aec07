"""A node with its pods, and sums over them.

upstream: pkg/scheduler/framework/types.go#NodeInfo
"""

from kcm_cli.planning.tolerations import PREFER_NO_SCHEDULE
from kcm_cli.sandbox import requests
from kcm_cli.sandbox.requests import CPU, MEMORY, PODS, Amounts
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, Port
from kcm_cli.sandbox.views import SimulatedNode


class NodeInfo:
    """A node, its pods by key, and sums over them.

    images: sizes by name. repels: whether the node has taints or is cordoned.
    """

    __slots__ = (
        "allocatable",
        "images",
        "labels",
        "name",
        "node",
        "pods",
        "ports",
        "requested",
        "room",
        "repels",
        "soft_taints",
        "usual",
    )

    def __init__(self, node: SimulatedNode) -> None:
        self.pods: dict[str, PodInfo] = {}
        self.requested: Amounts = {}
        self.usual: Amounts = {CPU: 0, MEMORY: 0}
        self.ports: set[Port] = set()
        self.set_node(node)

    def set_node(self, node: SimulatedNode) -> None:
        """Replace the Node object."""
        self.node = node
        self.name = node.name
        self.labels = node.labels
        self.allocatable = requests.amounts(node.status.allocatable)
        self.room = self.allocatable.get(PODS, 0)
        self.images = {name: image.size_bytes for image in node.status.images for name in image.names}
        taints = node.spec.taints
        self.soft_taints = tuple(taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
        self.repels = node.spec.unschedulable or len(taints) > len(self.soft_taints)

    def add(self, info: PodInfo) -> None:
        key = info.key
        if key in self.pods:
            self.remove(key)
        self.pods[key] = info
        self.ports.update(info.ports)
        self._count(info, 1)

    def remove(self, key: str) -> PodInfo | None:
        info = self.pods.pop(key, None)
        if info is None:
            return None
        self._count(info, -1)
        if info.ports:
            self.ports = {port for other in self.pods.values() for port in other.ports}
        return info

    def copy(self) -> "NodeInfo":
        """A copy that can be modified independently."""
        other = NodeInfo.__new__(NodeInfo)
        other.node, other.name, other.labels = self.node, self.name, self.labels
        other.allocatable, other.room, other.images = self.allocatable, self.room, self.images
        other.pods = dict(self.pods)
        other.requested, other.usual = dict(self.requested), dict(self.usual)
        other.ports = set(self.ports)
        other.soft_taints, other.repels = self.soft_taints, self.repels
        return other

    def _count(self, info: PodInfo, sign: int) -> None:
        requested = self.requested
        for name, amount in info.requests.items():
            requested[name] = requested.get(name, 0) + sign * amount
        usual = self.usual
        for name in (CPU, MEMORY):
            usual[name] += sign * info.usual[name]
