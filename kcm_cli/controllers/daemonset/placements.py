"""Caches which nodes each DaemonSet is placed on, until the DaemonSet or the node changes.

Without it, a sync with 500 nodes would evaluate every node several times. A heartbeat is a new version of a node, but
does not invalidate its entry.
"""

from collections.abc import Iterable, Mapping

import msgspec

from kcm_cli.api.apps import DaemonSet
from kcm_cli.api.core import Node
from kcm_cli.controllers.daemonset.plan.placement import Fit, Requirements, fit, requirements_of, same_to_daemons
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import in_turns

NODES = 500
"""So many nodes are evaluated in a turn at most."""


class _Known(msgspec.Struct):
    uid: str
    generation: int
    wanted: Requirements
    nodes: dict[str, Node] = msgspec.field(default_factory=dict)
    fits: dict[str, Fit] = msgspec.field(default_factory=dict)


class Placements:
    """The cache, by key of the DaemonSet. ``comparisons``: gate TaintTolerationComparisonOperators."""

    def __init__(self, *, comparisons: bool) -> None:
        self._comparisons = comparisons
        self._known: dict[str, _Known] = {}

    async def prepare(self, daemon_set: DaemonSet, nodes: Store[Node]) -> None:
        """Evaluate the nodes that are new to this DaemonSet, so that ``of`` finds them. Yields to the loop: anybody may
        require one of thousands of things."""
        known = self._of(daemon_set)
        new = [node for node in nodes if known.nodes.get(node.name) is not node]
        async for node in in_turns(new, NODES):
            if nodes.get(node.name) is node:
                self._fit(known, node)

    def of(self, daemon_set: DaemonSet, nodes: Iterable[Node]) -> Mapping[str, Fit]:
        """The fit of each of these nodes, by name, as a new mapping."""
        known = self._of(daemon_set)
        return {node.name: self._fit(known, node) for node in nodes}

    def on(self, daemon_set: DaemonSet, node: Node) -> Fit:
        """The fit of one node."""
        return self._fit(self._of(daemon_set), node)

    def forget(self, key: str) -> None:
        """Remove a deleted DaemonSet."""
        self._known.pop(key, None)

    def forget_node(self, node: Node) -> None:
        """Remove a deleted node."""
        for known in self._known.values():
            known.nodes.pop(node.name, None)
            known.fits.pop(node.name, None)

    def _of(self, daemon_set: DaemonSet) -> _Known:
        uid, generation = daemon_set.uid, daemon_set.metadata.generation
        known = self._known.get(daemon_set.key)
        if known is None or (known.uid, known.generation) != (uid, generation):
            known = _Known(uid, generation, requirements_of(daemon_set.spec.template))
            self._known[daemon_set.key] = known
        return known

    def _fit(self, known: _Known, node: Node) -> Fit:
        name = node.name
        seen = known.nodes.get(name)
        if seen is node:
            return known.fits[name]
        if seen is None or not same_to_daemons(seen, node):
            known.fits[name] = fit(known.wanted, node, comparisons=self._comparisons)
        known.nodes[name] = node
        return known.fits[name]
