"""The scheduler's state of the cluster: nodes, their pods, and the resources in use.

It is updated from informers and assumed pods; decisions only read it. ``NodeInfo.copy`` and ``ClusterState.with_node``
create hypothetical states at the cost of one node.

upstream: pkg/scheduler/backend/cache
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping

from kcm_cli.machinery.labels import EVERYTHING, Selector
from kcm_cli.sandbox.scheduler.columns import Columns
from kcm_cli.sandbox.scheduler.devices.state import DeviceState, no_devices
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podindex import Counts, Namespaces, PodIndex, PodSet
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, Term
from kcm_cli.sandbox.views import SimulatedNode, SimulatedPod

NO_LABELS: Mapping[str, str] = {}
_NOWHERE: Mapping[str, str] = {}


def no_selector(pod: SimulatedPod) -> Selector:
    """A ``selector_for`` for pods without Services and owner."""
    return EVERYTHING


class ClusterState:
    """All nodes.

    nominated: by node, the pods that wait for their victims to end. image_nodes: the number of nodes with an image.
    image_sizes: its size in bytes, as the first node reported it. selector_for: the selector of the pods that belong
    together with a pod.
    """

    def __init__(
        self, selector_for: Callable[[SimulatedPod], Selector] = no_selector, devices: DeviceState | None = None
    ) -> None:
        self.nodes: MutableMapping[str, NodeInfo] = {}
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        self.image_nodes: Counter[str] = Counter()
        self.image_sizes: dict[str, int] = {}
        self.selector_for = selector_for
        self.devices = devices if devices is not None else no_devices()
        self._placed: dict[str, dict[str, str]] = {}
        self._waiting: dict[str, dict[str, PodInfo]] = {}
        self._index = PodIndex(self._counted, self._located)
        self._columns: Columns | None = None
        self._soft: set[str] = set()
        self._supposed: tuple[ClusterState, NodeInfo] | None = None

    def set_node(self, node: SimulatedNode) -> None:
        """Add or replace a node, with pods that were seen before it."""
        known = self.nodes.get(node.name)
        if known is None or known.labels != node.labels:
            self._columns = None
        if known is not None:
            self._remove_images(known)
            known.set_node(node)
            self._add_images(known)
            self._changed(known, only_pods=False)
            return
        info = self.nodes[node.name] = NodeInfo(node)
        self._changed(info, only_pods=False)
        self._add_images(info)
        for pod in self._waiting.pop(node.name, {}).values():
            self._add(info, pod)

    def remove_node(self, name: str) -> None:
        """Remove a node. Its pods are kept in case it comes back."""
        info = self.nodes.pop(name, None)
        if info is None:
            return
        self._columns = None
        self._soft.discard(name)
        self._remove_images(info)
        for pod in info.pods.values():
            self._index.remove(name, pod)
        if info.pods:
            self._waiting[name] = info.pods

    def place(self, info: PodInfo, node: str) -> None:
        """Assign a pod to a node, and remove it from any other."""
        if self.node_of(info.key) not in (node, None):
            self.take_off(info.key)
        self._placed.setdefault(info.pod.namespace, {})[info.key] = node
        on = self.nodes.get(node)
        if on is None:
            self._waiting.setdefault(node, {})[info.key] = info
            return
        known = on.pods.get(info.key)
        if known is None or known.requests is not info.requests:  # a pod that is parsed again has other requests
            self._add(on, info)
            return
        on.pods[info.key] = info
        if known.pod.deleting != info.pod.deleting or known.pod.metadata.labels != info.pod.metadata.labels:
            self._index.replace(on.name, known, info)

    def take_off(self, key: str) -> bool:
        """Remove a pod from its node. Returns whether it had one."""
        alike = self._placed.get(_namespace_of(key), {})
        node = alike.pop(key, None)
        if node is None:
            return False
        if not alike:
            del self._placed[_namespace_of(key)]
        on = self.nodes.get(node)
        if on is not None:
            self._remove(on, key)
        else:
            self._waiting.get(node, {}).pop(key, None)
        return True

    def node_of(self, key: str) -> str | None:
        """The node of a pod, assigned or assumed."""
        return self._placed.get(_namespace_of(key), _NOWHERE).get(key)

    def nominate(self, info: PodInfo, node: str) -> None:
        """Nominate a node for a pod, instead of any earlier one."""
        self.forget_nomination(info.key)
        if node:
            self.nominated.setdefault(node, {})[info.key] = info

    def update_nominated(self, info: PodInfo) -> None:
        """Replace a pod that has a nominated node."""
        for pods in self.nominated.values():
            if info.key in pods:
                pods[info.key] = info

    def forget_nomination(self, key: str) -> None:
        for node, pods in list(self.nominated.items()):
            if pods.pop(key, None) is not None and not pods:
                del self.nominated[node]

    @property
    def namespaces(self) -> Namespaces:
        """The labels of namespaces."""
        return self._index.namespaces

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace has these labels."""
        if self._index.namespaces.get(name, NO_LABELS) == labels:
            return
        self._index.set_namespace(name, labels)

    def forget_namespace(self, name: str) -> None:
        """A namespace was deleted. It has no pods any more, but another cache may still show some."""
        if self._placed.get(name):
            self.set_namespace(name, NO_LABELS)
        self._index.namespaces.pop(name, None)

    def labels_of_namespace(self, name: str) -> Mapping[str, str]:
        return self._index.namespaces.get(name, NO_LABELS)

    def with_node(self, info: NodeInfo) -> "ClusterState":
        """The state with another version of one node."""
        other = ClusterState.__new__(ClusterState)
        other.nodes = ChainMap({info.name: info}, self.nodes)
        other.nominated, other.selector_for = self.nominated, self.selector_for
        other.image_nodes, other.image_sizes = self.image_nodes, self.image_sizes
        other._placed, other._waiting, other._index = self._placed, self._waiting, self._index
        other.devices = self.devices
        other._supposed = (self, info)
        other._columns, other._soft = None, self._soft
        return other

    def all(self) -> Iterable[NodeInfo]:
        if self._supposed is None:
            return self.nodes.values()
        real, changed = self._supposed
        return (changed if node.name == changed.name else node for node in real.all())

    def pods_of(self, namespace: str) -> Iterator[PodInfo]:
        """The pods of a namespace that are on known nodes."""
        if self._supposed is not None:
            real, changed = self._supposed
            yield from (info for info in real.pods_of(namespace) if info.key not in real.nodes[changed.name].pods)
            yield from (info for info in changed.pods.values() if info.pod.namespace == namespace)
            return
        for key in self._keys(namespace):
            if (located := self._located(key)) is not None:
                yield located[1]

    def has_below(self, priority: int) -> bool:
        """Whether some pod has a lower priority. Without hypothetical changes."""
        return self._index.has_below(priority)

    @property
    def columns(self) -> Columns:
        """All nodes in scheduling order."""
        if self._columns is None:
            self._columns = Columns(self.nodes.values())
        return self._columns

    @property
    def rather_not(self) -> bool:
        """Whether some node has a PreferNoSchedule taint."""
        return bool(self._soft)

    # -- pods of some kind

    def counts(self, kind: PodSet) -> Counts:
        """The number of pods of a kind by node. Read-only."""
        if self._supposed is None:
            return self._index.counts(kind, self._keys)
        real, node = self._supposed
        found = _without(real.counts(kind), node.name)
        count = self._count_on(node, kind)
        return {**found, node.name: count} if count else found

    def domains(self, label: str) -> Mapping[str | None, int]:
        """The number of nodes by the value of a label; None for those without it."""
        real = self if self._supposed is None else self._supposed[0]
        return real.columns.domains(label)

    def counts_by(self, label: str, kind: PodSet) -> Mapping[str | None, int]:
        """The number of pods of a kind on all nodes with the same value of a label. Read-only."""
        if self._supposed is None:
            return self.columns.counts(kind, self.counts(kind)).by(label)
        real, node = self._supposed
        found = real.counts_by(label, kind)
        more = self._count_on(node, kind) - real.counts(kind).get(node.name, 0)
        value = node.labels.get(label)
        return {**found, value: found.get(value, 0) + more} if more else found

    def _count_on(self, node: NodeInfo, kind: PodSet) -> int:
        return sum(kind.has(info, self.namespaces) for info in node.pods.values())

    def anti(self, info: PodInfo) -> Iterator[tuple[Term, Counts]]:
        """The required anti-affinity terms of pods that may be about a pod, with the numbers of these pods by node."""
        if self._supposed is None:
            yield from self._index.anti(info)
            return
        real, node = self._supposed
        for term, counts in real.anti(info):
            yield term, _without(counts, node.name)
        for other in node.pods.values():
            for term in other.anti_affinity:
                yield term, {node.name: 1}

    def drawn(self, info: PodInfo) -> Iterator[tuple[Term, int, Counts]]:
        """All other terms of pods that may be about a pod, with their weights and the numbers of pods by node. Without
        hypothetical changes."""
        for (term, weight), counts in self._index.drawn(info):
            yield term, weight, counts

    def _keys(self, namespace: str) -> Iterator[str]:
        """The keys of the assigned pods of a namespace, or of all."""
        for placed in [self._placed.get(namespace, _NOWHERE)] if namespace else self._placed.values():
            yield from placed

    def _located(self, key: str) -> tuple[str, PodInfo] | None:
        """The node of an assigned pod, if it is known, and the pod."""
        name = self.node_of(key) or ""
        node = self.nodes.get(name)
        return (name, node.pods[key]) if node is not None else None

    def _changed(self, node: NodeInfo, *, only_pods: bool) -> None:
        if self._columns is not None:
            self._columns.changed(node.name, only_pods=only_pods)
        (self._soft.add if node.soft_taints else self._soft.discard)(node.name)

    def _counted(self, kind: PodSet, node: str) -> None:
        if self._columns is not None:
            self._columns.counted(kind, node)

    def _add_images(self, node: NodeInfo) -> None:
        for name, size in node.images.items():
            self.image_nodes[name] += 1
            self.image_sizes.setdefault(name, size)

    def _remove_images(self, node: NodeInfo) -> None:
        for name in node.images:
            self.image_nodes[name] -= 1
            if not self.image_nodes[name]:
                del self.image_nodes[name], self.image_sizes[name]

    def _add(self, on: NodeInfo, info: PodInfo) -> None:
        """Add a pod, instead of its earlier version if there is one."""
        earlier = on.remove(info.key)
        if earlier is not None:
            self._index.remove(on.name, earlier)
        on.add(info)
        self._changed(on, only_pods=True)
        self._index.add(on.name, info)

    def _remove(self, on: NodeInfo, key: str) -> None:
        removed = on.remove(key)
        if removed is not None:
            self._changed(on, only_pods=True)
            self._index.remove(on.name, removed)


def _namespace_of(key: str) -> str:
    return key.partition("/")[0]


def _without(counts: Counts, node: str) -> Counts:
    return {name: count for name, count in counts.items() if name != node} if node in counts else counts
