"""The distribution of CPUs and hinted endpoints over zones: state between syncs, and a queue for changes of nodes.

The zones' shares affect all Services, and change with nodes: some Services lose their hints, others may have them now.

upstream: staging/src/k8s.io/endpointslice/topologycache/topologycache.go
"""

import logging
from collections.abc import Collection, Mapping
from typing import TypeVar

from kcm_cli.api.core import Node
from kcm_cli.api.well_known import ZONE
from kcm_cli.component.logs import V2
from kcm_cli.controllers.endpointslice.plan.topology import Ratios, filed_cpus, hintable, overloaded, zone_ratios
from kcm_cli.engine.controller import Keys
from kcm_cli.planning.nodes import is_ready
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.workqueue import WorkQueue

log = logging.getLogger(__name__)

_KEY = "nodes"
_CPUS = "cpus and zone"
"""The index of nodes."""
V = TypeVar("V")


def _forget(found: dict[str, dict[str, V]], key: str, address_type: str) -> None:
    by_type = found.get(key)
    if by_type is not None:
        by_type.pop(address_type, None)
        if not by_type:
            del found[key]


class Zones:
    """The zones' shares, and the endpoints by zone of each Service with topology hints. upstream: TopologyCache.

    services: the queue of Services. After a change of nodes it is filled with those that have too few endpoints in a
    zone, and with those that wanted hints before and can have them now.
    """

    def __init__(self, nodes: Store[Node], services: WorkQueue) -> None:
        self._ratios: Ratios | None = None
        self._looked = False
        self._nodes = nodes
        nodes.add_index(_CPUS, filed_cpus)
        self._services = services
        self._counts: dict[str, dict[str, Mapping[str, int]]] = {}
        self._hinted: set[str] = set()
        self._unhinted: dict[str, dict[str, int]] = {}
        """Ready endpoints that wait for hints, by Service and address type."""

    @property
    def ratios(self) -> Ratios | None:
        """The zones' shares of the CPUs. Computed on first use, so that hints are not removed for lack of them."""
        if not self._looked:
            filed = self._nodes.index_values(_CPUS)
            self._ratios = zone_ratios({value: self._nodes.count(_CPUS, value) for value in filed})
            self._looked = True
        return self._ratios

    def hinted(self, key: str) -> bool:
        """Whether the Service has hints."""
        return key in self._hinted

    def note(self, key: str, address_type: str, counts: Mapping[str, int]) -> None:
        """Record the Service's hints: the number of endpoints for each zone."""
        _forget(self._unhinted, key, address_type)
        self._counts.setdefault(key, {})[address_type] = counts
        self._hinted.add(key)

    def forget(self, key: str, address_type: str, unhinted: int | None = None) -> None:
        """Record that the Service has no hints for this address type. ``unhinted``: the number of its ready endpoints,
        if it wants hints that the nodes do not allow."""
        _forget(self._counts, key, address_type)
        self._hinted.discard(key)
        if unhinted is None:
            _forget(self._unhinted, key, address_type)
        else:
            self._unhinted.setdefault(key, {})[address_type] = unhinted

    def keep(self, key: str, address_types: Collection[str]) -> None:
        """Look at no other address types of the Service when nodes change: it has no slices of them."""
        known = {*self._counts.get(key, ()), *self._unhinted.get(key, ())}
        for address_type in known.difference(address_types):
            _forget(self._counts, key, address_type)
            _forget(self._unhinted, key, address_type)

    async def sync(self, key: str) -> None:
        """Recompute the shares, at once for Services with hints or wanting them, else when they are next used."""
        self._looked = False
        for service, by_type in tuple(self._counts.items()):
            if any(overloaded(counts, self.ratios) for counts in by_type.values()):
                text = "Queuing Service after Node change due to overloading"
                log.log(V2, text, extra={"fields": {"key": service}})
                self._services.add(service)
        numbers = {endpoints for waiting in self._unhinted.values() for endpoints in waiting.values()}
        possible = {endpoints for endpoints in numbers if hintable(endpoints, self.ratios)}
        for service, waiting in tuple(self._unhinted.items()):
            if not possible.isdisjoint(waiting.values()):
                text = "Queuing Service after Node change since hints are possible"
                log.log(V2, text, extra={"fields": {"key": service}})
                self._services.add(service)

    def all_nodes(self, node: Node) -> Keys:
        """The same key for all nodes."""
        return (_KEY,)

    def all_if_moved(self, old: Node, new: Node) -> Keys:
        """The same key, if the node's readiness or zone has changed."""
        return (_KEY,) if is_ready(old) != is_ready(new) or old.labels.get(ZONE) != new.labels.get(ZONE) else ()
