"""All nodes in scheduling order, with columns of their properties.

A decision reads few values of a thousand nodes. Reading them from lists takes a fraction of the time of reading them
from the nodes, which are not in the CPU's caches. Values are kept until the node or its pods change.

upstream: pkg/scheduler/backend/cache/{node_tree,snapshot}.go has the order; each node is filtered and scored anew.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import Any, Generic, TypeVar

from kcm_cli.api.well_known import REGION, ZONE
from kcm_cli.sandbox.scheduler.node_info import NodeInfo

T = TypeVar("T")

_KEPT = 128
_LABELS = 8
_FEW = 64
_CHANGES = 4
"""For how many changes of pods per node columns are kept that are not used."""
_ZONE_LABELS = (REGION, ZONE)


class Column(Generic[T]):
    """A value for each node, by position. ``stale``: the positions to read again. ``by_pods``: whether it depends on
    the node's pods, too. ``seen``: how many of the changes of pods are in ``stale`` already."""

    __slots__ = ("values", "stale", "by_pods", "seen")

    def __init__(self, count: int, *, by_pods: bool) -> None:
        self.values: list[Any] = [None] * count
        self.stale = set(range(count))
        self.by_pods = by_pods
        self.seen = 0

    def of(self, positions: Sequence[int], nodes: Sequence[NodeInfo], read: Callable[[NodeInfo], T]) -> Sequence[T]:
        """The values of some nodes. Fastest for a range."""
        values, stale = self.values, self.stale
        if stale:
            for position in list(stale) if len(stale) <= _FEW else stale.intersection(positions):
                values[position] = read(nodes[position])
                stale.discard(position)
        return taken(values, positions)


def taken(values: Sequence[T], positions: Sequence[int]) -> Sequence[T]:
    """The values at some positions."""
    if isinstance(positions, range):
        return values[positions.start : positions.stop]
    return list(map(values.__getitem__, positions))


class PodCounts:
    """The number of pods of a kind on each node (``values``, by position) and by the values of labels, updated with
    each change of ``known``, the numbers by node."""

    __slots__ = ("known", "values", "_nodes", "_positions", "_by_label")

    def __init__(self, nodes: Sequence[NodeInfo], positions: Mapping[str, int], known: Mapping[str, int]) -> None:
        self.known = known
        self.values = [0] * len(nodes)
        self._nodes, self._positions = nodes, positions
        self._by_label: dict[str, Counter[str | None]] = {}
        for name in known:
            self.update(name)

    def update(self, name: str) -> None:
        """The number of a node changed."""
        position, count = self._positions[name], self.known.get(name, 0)
        more = count - self.values[position]
        self.values[position] = count
        for label, sums in self._by_label.items():
            sums[self._nodes[position].labels.get(label)] += more

    def by(self, label: str) -> Mapping[str | None, int]:
        """The sums over nodes with the same value of a label."""
        found = self._by_label.get(label)
        if found is None:
            if len(self._by_label) >= _LABELS:
                self._by_label.clear()
            found = self._by_label[label] = Counter()
            for name, count in self.known.items():
                found[self._nodes[self._positions[name]].labels.get(label)] += count
        return found


class Columns:
    """The nodes and their columns. ``nodes``: alternating by zone, so that any range of them is spread over the
    zones. A column learns which nodes' pods have changed when it is used: each pod changes most columns, and is
    compared by few."""

    def __init__(self, nodes: Iterable[NodeInfo]) -> None:
        zones: dict[tuple[str, ...], list[NodeInfo]] = {}
        for node in nodes:
            zones.setdefault(_zone_of(node), []).append(node)
        rounds = zip_longest(*zones.values())
        self.nodes: Sequence[NodeInfo] = [node for each in rounds for node in each if node is not None]
        self.positions: Mapping[str, int] = {node.name: position for position, node in enumerate(self.nodes)}
        self._kept: dict[tuple[str, object], Column[Any]] = {}
        self._counts: dict[object, PodCounts] = {}
        self._domains: dict[str, Counter[str | None]] = {}
        self._changes: list[int] = []
        """The positions whose pods have changed, the latest last."""

    @cached_property
    def ranks(self) -> Sequence[int]:
        """The place of each node in the order of names, by position."""
        ranks = {name: rank for rank, name in enumerate(sorted(self.positions))}
        return [ranks[node.name] for node in self.nodes]

    def domains(self, label: str) -> Mapping[str | None, int]:
        """The number of nodes by the value of a label; None for those without it."""
        found = self._domains.get(label)
        if found is None:
            if len(self._domains) >= _LABELS:
                self._domains.clear()
            found = self._domains[label] = Counter(node.labels.get(label) for node in self.nodes)
        return found

    def counts(self, kind: object, known: Mapping[str, int]) -> PodCounts:
        """The numbers of pods of a kind, which are kept while they are among the most recently used ones."""
        found = self._counts.pop(kind, None)
        if found is None or found.known is not known:
            found = PodCounts(self.nodes, self.positions, known)
            if len(self._counts) >= _KEPT:
                del self._counts[next(iter(self._counts))]
        self._counts[kind] = found
        return found

    def counted(self, kind: object, name: str) -> None:
        """The number of pods of a kind on a node changed."""
        found = self._counts.get(kind)
        if found is not None:
            found.update(name)

    def column(self, what: str, key: object, *, by_pods: bool) -> Column[Any]:
        """A column, which is kept while it is among the most recently used ones."""
        found = self._kept.pop((what, key), None)
        if found is None:
            found = Column(len(self.nodes), by_pods=by_pods)
            if len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
        elif found.by_pods:
            found.stale.update(self._changes[found.seen :])
        found.seen = len(self._changes)
        self._kept[what, key] = found  # the last one now
        return found

    def changed(self, name: str, *, only_pods: bool) -> None:
        """A node, or its pods, changed."""
        position = self.positions[name]
        if only_pods:
            self._changes.append(position)
            if len(self._changes) > _CHANGES * len(self.nodes):
                self._forget_changes()
        else:
            for column in self._kept.values():
                column.stale.add(position)

    def _forget_changes(self) -> None:
        """Forget the older half of the changes, and the columns that have not seen these."""
        half = len(self._changes) // 2
        del self._changes[:half]
        self._kept = {key: column for key, column in self._kept.items() if column.seen >= half or not column.by_pods}
        for column in self._kept.values():
            column.seen = max(column.seen - half, 0)


def _zone_of(node: NodeInfo) -> tuple[str, ...]:
    return tuple(node.labels.get(name, "") for name in _ZONE_LABELS)
