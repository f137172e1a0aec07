"""The nodes among which one is chosen, and what scores read of them, in their order."""

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat

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

    def counts(self, counts: Mapping[str, int]) -> Sequence[int]:
        """How many pods each node has, of which ``counts`` says it by name."""
        known, positions = self.state.columns.positions, self.positions
        here = {known[name]: count for name, count in counts.items()}
        if not isinstance(positions, range):
            return list(map(here.get, positions, repeat(0)))
        found = [0] * len(positions)
        for position, count in here.items():
            if position in positions:
                found[position - positions.start] = count
        return found
