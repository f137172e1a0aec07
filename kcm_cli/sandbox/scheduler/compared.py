"""The nodes among which one is chosen, and what scores read of them, in their order."""

from collections.abc import Callable, Mapping, Sequence

from kcm_cli.sandbox.scheduler.podindex import Kind
from kcm_cli.sandbox.scheduler.state import ClusterState, NodeInfo
from kcm_cli.sandbox.scheduler.verdict import Scores, each_its_own


class Compared:
    """``positions``: the nodes' in the columns of the state; a range where they are in a row."""

    def __init__(self, state: ClusterState, positions: Sequence[int]) -> None:
        self.state = state
        self.positions = positions
        self._all, self._column = state.columns.nodes, state.columns.column

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        return [self._all[position] for position in self.positions]

    def labels(self, key: str) -> Sequence[str | None]:
        """The values of a label."""
        return self._column("label", key, by_pods=False).of(
            self.positions, self._all, lambda node: node.labels.get(key)
        )

    def image_sizes(self, name: str) -> Sequence[int]:
        """The bytes of an image that some node has, 0 where it is not."""
        column, size = self._column("image", name, by_pods=False), self.state.image_sizes[name]
        return column.of(self.positions, self._all, lambda node: size if name in node.images else 0)

    def scores(self, size: object, score: Callable[[NodeInfo], int]) -> Scores:
        """What a node alone scores for pods of one size."""
        return each_its_own(self._column("score", size, by_pods=True).of(self.positions, self._all, score))

    def counts(self, kind: Kind) -> Sequence[int]:
        """How many pods of a kind each node has."""
        known = self.state.counts(kind)
        column = self._column("pods", kind, by_pods=True)
        return column.of(self.positions, self._all, lambda node: known.get(node.name, 0))

    def counts_by(self, label: str, kind: Kind) -> Mapping[str | None, int]:
        """How many pods of a kind all nodes with the same value of a label have together."""
        known = self.state.counts(kind)
        totals = self.state.columns.totals("pods by label", (label, kind))
        return totals.sums(self._all, lambda node: node.labels.get(label), lambda node: known.get(node.name, 0))
