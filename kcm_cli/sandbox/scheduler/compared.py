"""The feasible nodes, and the values that scores read, in their order."""

from collections.abc import Callable, Mapping, Sequence

from kcm_cli.sandbox.scheduler.columns import taken
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podindex import PodSet
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.scheduler.verdict import Scores, each_its_own


class Compared:
    """``positions``: the positions of the nodes in the columns of the state; a range if they are consecutive."""

    def __init__(self, state: ClusterState, positions: Sequence[int]) -> None:
        self.state = state
        self.positions = positions
        self._all, self._column = state.columns.nodes, state.columns.column

    @property
    def nodes(self) -> Sequence[NodeInfo]:
        return [self._all[position] for position in self.positions]

    def labels(self, key: str) -> Sequence[str | None]:
        """The value of a label on each node."""
        return self._column("label", key, by_pods=False).of(
            self.positions, self._all, lambda node: node.labels.get(key)
        )

    def image_sizes(self, name: str) -> Sequence[int]:
        """The size of an image in bytes on each node; 0 if it is absent."""
        column, size = self._column("image", name, by_pods=False), self.state.image_sizes[name]
        return column.of(self.positions, self._all, lambda node: size if name in node.images else 0)

    def scores(self, size: object, score: Callable[[NodeInfo], int]) -> Scores:
        """The score of each node, for pods of one size."""
        return each_its_own(self._column("score", size, by_pods=True).of(self.positions, self._all, score))

    def counts(self, kind: PodSet) -> Sequence[int]:
        """The number of pods of a kind on each node."""
        return taken(self.state.columns.counts(kind, self.state.counts(kind)).values, self.positions)

    def counts_by(self, label: str, kind: PodSet) -> Mapping[str | None, int]:
        """The number of pods of a kind on all nodes with the same value of a label."""
        return self.state.counts_by(label, kind)
