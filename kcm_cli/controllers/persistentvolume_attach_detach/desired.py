"""The desired state of the world: which nodes are looked after, and which volumes their pods need there.

upstream: pkg/controller/volume/attachdetach/cache/desired_state_of_world.go
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kcm_cli.api.core import Pod
from kcm_cli.planning.volumes.attachable import AttachableVolume


@dataclass(slots=True)
class Wanted:
    """A volume that pods (by uid) need on a node. ``told``: that it is in use elsewhere was said already."""

    volume: AttachableVolume
    node: str
    pods: dict[str, Pod] = field(default_factory=dict)
    told: bool = False


class DesiredState:
    """Changes with no await in between: readers in the loop always see it whole."""

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._volumes: dict[str, dict[str, Wanted]] = {}
        self._on_node: dict[str, int] = {}
        self._of_pod: dict[str, set[tuple[str, str]]] = {}

    def add_node(self, node: str) -> bool:
        """Look after a node; whether that is new."""
        if node in self._nodes:
            return False
        self._nodes.add(node)
        return True

    def remove_node(self, node: str) -> None:
        """A node is gone; it is still looked after while pods need volumes there."""
        if not self._on_node.get(node):
            self._nodes.discard(node)

    def manages(self, node: str) -> bool:
        return node in self._nodes

    def add(self, pod: Pod, volume: AttachableVolume) -> bool:
        """Note that a pod needs a volume on its node; whether that is new."""
        node = pod.spec.node_name
        nodes = self._volumes.setdefault(volume.unique_name, {})
        wanted = nodes.get(node)
        if wanted is None:
            wanted = nodes[node] = Wanted(volume, node)
            self._on_node[node] = self._on_node.get(node, 0) + 1
        new = pod.uid not in wanted.pods
        wanted.pods[pod.uid] = pod
        self._of_pod.setdefault(pod.uid, set()).add((volume.unique_name, node))
        return new

    def remove_pod(self, uid: str) -> list[str]:
        """A pod needs nothing any more; the volumes that it needed."""
        needed = self._of_pod.pop(uid, set())
        for name, node in needed:
            self._release(name, node, uid)
        return [name for name, _ in needed]

    def remove_volume(self, name: str) -> None:
        """A volume is not one to attach any more, whoever needs it."""
        for node, wanted in tuple(self._volumes.get(name, {}).items()):
            for uid in tuple(wanted.pods):
                self._of_pod[uid].discard((name, node))
                self._release(name, node, uid)

    def get(self, name: str, node: str) -> Wanted | None:
        return self._volumes.get(name, {}).get(node)

    def nodes_of(self, name: str) -> tuple[str, ...]:
        """The nodes on which a volume is needed."""
        return tuple(self._volumes.get(name, ()))

    def pods_on(self, name: str, nodes: Iterable[str]) -> list[Pod]:
        """The pods that need a volume on some nodes."""
        found = (self.get(name, node) for node in nodes)
        return [pod for wanted in found if wanted is not None for pod in wanted.pods.values()]

    def __iter__(self) -> Iterator[Wanted]:
        return (wanted for nodes in tuple(self._volumes.values()) for wanted in tuple(nodes.values()))

    def _release(self, name: str, node: str, uid: str) -> None:
        wanted = self._volumes[name][node]
        wanted.pods.pop(uid, None)
        if wanted.pods:
            return
        del self._volumes[name][node]
        if not self._volumes[name]:
            del self._volumes[name]
        self._on_node[node] -= 1
        if not self._on_node[node]:
            del self._on_node[node]
