"""The desired and the actual state of the world: which volumes nodes need, and which are attached to them.

upstream: pkg/controller/volume/attachdetach/cache/{desired,actual}_state_of_world.go
"""

from collections.abc import Iterable, Iterator

import msgspec

from kcm_cli.api.core import Pod
from kcm_cli.planning.volumes.attachable import AttachableVolume


class Wanted(msgspec.Struct):
    """A volume that pods (by uid) need on a node.

    multi_attach_reported: an Event says that it is attached elsewhere. since: the monotonic time at which it was first
    ready to be attached, or found to be in use.
    """

    volume: AttachableVolume
    node: str
    pods: dict[str, Pod] = msgspec.field(default_factory=dict)
    multi_attach_reported: bool = False
    since: float | None = None


class DesiredState:
    """The managed nodes, and the volumes that their pods need. upstream: desiredStateOfWorld.

    Methods do not await, so that readers always see a consistent state.
    """

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._volumes: dict[str, dict[str, Wanted]] = {}
        self._on_node: dict[str, int] = {}
        self._of_pod: dict[str, set[tuple[str, str]]] = {}

    def add_node(self, node: str) -> bool:
        """Manage a node. Returns whether it was not managed before."""
        if node in self._nodes:
            return False
        self._nodes.add(node)
        return True

    def remove_node(self, node: str) -> None:
        """Remove a deleted node, unless pods need volumes there."""
        if not self._on_node.get(node):
            self._nodes.discard(node)

    def manages(self, node: str) -> bool:
        return node in self._nodes

    def known_nodes(self) -> set[str]:
        """The managed nodes."""
        return set(self._nodes)

    def add(self, pod: Pod, volume: AttachableVolume) -> bool:
        """Add a volume that a pod needs on its node. Returns whether that is new."""
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
        """Remove a pod; returns the volumes that it needed."""
        needed = self._of_pod.pop(uid, set())
        for name, node in needed:
            self._release(name, node, uid)
        return [name for name, _ in needed]

    def remove_volume(self, name: str) -> None:
        """Remove a volume, even if pods need it."""
        for node, wanted in tuple(self._volumes.get(name, {}).items()):
            for uid in tuple(wanted.pods):
                self._of_pod[uid].discard((name, node))
                self._release(name, node, uid)

    def pods(self) -> set[str]:
        """The uids of the pods that need volumes."""
        return set(self._of_pod)

    def get(self, name: str, node: str) -> Wanted | None:
        return self._volumes.get(name, {}).get(node)

    def nodes_of(self, name: str) -> tuple[str, ...]:
        """The nodes on which a volume is needed."""
        return tuple(self._volumes.get(name, ()))

    def pods_on(self, name: str, nodes: Iterable[str]) -> list[Pod]:
        """The pods that need a volume on these nodes."""
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


class Attachment(msgspec.Struct):
    """The attachment to one node. ``detach_requested``: the monotonic time since which it is to be detached."""

    confirmed: bool
    detach_requested: float | None = None


class Attached(msgspec.Struct):
    """A volume that is, or may be, attached. ``volume``: None if only its name is known."""

    name: str
    volume: AttachableVolume | None
    device: str = ""
    nodes: dict[str, Attachment] = msgspec.field(default_factory=dict)


class ActualState:
    """The attachments as far as known. upstream: actualStateOfWorld.

    An attachment is uncertain after a failed attach or detach: the volume may or may not be attached, and the node's
    status does not list it. Methods do not await, so that readers always see a consistent state.
    """

    def __init__(self) -> None:
        self._volumes: dict[str, Attached] = {}
        self._on_node: dict[str, set[str]] = {}
        self._in_use: dict[str, set[str]] = {}
        self._reported: dict[str, set[str]] = {}

    def __iter__(self) -> Iterator[Attached]:
        return iter(tuple(self._volumes.values()))

    def get(self, name: str) -> Attached | None:
        return self._volumes.get(name)

    def nodes_of(self, name: str) -> tuple[str, ...]:
        """The nodes to which a volume is, or may be, attached."""
        found = self._volumes.get(name)
        return tuple(found.nodes) if found is not None else ()

    def confirmed_nodes(self, name: str) -> list[str]:
        """The nodes to which a volume is known to be attached."""
        found = self._volumes.get(name)
        return [node for node, at in found.nodes.items() if at.confirmed] if found is not None else []

    def on_node(self, node: str) -> tuple[str, ...]:
        """The volumes that are, or may be, attached to a node."""
        return tuple(self._on_node.get(node, ()))

    def attachment(self, name: str, node: str) -> Attachment | None:
        found = self._volumes.get(name)
        return found.nodes.get(node) if found is not None else None

    # -- what is attached

    def attached(self, name: str, volume: AttachableVolume | None, node: str, device: str = "") -> None:
        """Mark a volume as attached to a node; the node's status is to list it."""
        self._mark(name, volume, node, device, confirmed=True)
        self.report(name, node)

    def uncertain(self, name: str, volume: AttachableVolume | None, node: str) -> None:
        """Mark a volume as possibly attached to a node."""
        self._mark(name, volume, node, "", confirmed=False)

    def detached(self, name: str, node: str) -> None:
        found = self._volumes.get(name)
        if found is None or found.nodes.pop(node, None) is None:
            return
        if not found.nodes:
            del self._volumes[name]
        self._on_node[node].discard(name)
        if not self._on_node[node]:
            del self._on_node[node]
        self.unreport(name, node)

    def keep(self, name: str, node: str) -> None:
        """Cancel the request to detach a volume from a node. upstream: ResetDetachRequestTime."""
        at = self.attachment(name, node)
        if at is not None:
            at.detach_requested = None

    def _mark(self, name: str, volume: AttachableVolume | None, node: str, device: str, *, confirmed: bool) -> None:
        found = self._volumes.setdefault(name, Attached(name, volume))
        found.volume, found.device = volume, device
        at = found.nodes.get(node)
        if at is not None:
            at.confirmed = confirmed
            return
        found.nodes[node] = Attachment(confirmed)
        self._on_node.setdefault(node, set()).add(name)

    # -- what nodes have mounted

    def set_in_use(self, node: str, names: Iterable[str]) -> None:
        """Set the volumes that a node reports as mounted."""
        self._in_use[node] = set(names)

    def forget_node(self, node: str) -> None:
        """Remove a deleted node without attachments."""
        if node not in self._on_node:
            self._in_use.pop(node, None)
            self._reported.pop(node, None)

    def known_nodes(self) -> set[str]:
        """The nodes of which anything is known."""
        return self._on_node.keys() | self._in_use.keys() | self._reported.keys()

    def in_use(self, name: str, node: str) -> bool:
        return name in self._in_use.get(node, ())

    # -- what nodes' statuses list

    def report(self, name: str, node: str) -> None:
        """List a volume in the status of a node, if it is, or may be, attached there."""
        if self.attachment(name, node) is not None:
            self._reported.setdefault(node, set()).add(name)

    def unreport(self, name: str, node: str) -> None:
        """Do not list a volume in the status of a node, since it is not safe to mount."""
        self._reported.get(node, set()).discard(name)

    def reports(self, node: str) -> list[tuple[str, str]] | None:
        """The volumes that a node's status is to list, with their devices; None for a node that never had one."""
        names = self._reported.get(node)
        if names is None:
            return None
        return [(name, self._volumes[name].device) for name in sorted(names)]
