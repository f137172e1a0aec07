"""How CPUs and hinted endpoints are spread over zones: state between syncs, and the queue that follows the nodes.

A fifth file: the shares of the zones concern all Services at once, and change with nodes, not with Services.

upstream: staging/src/k8s.io/endpointslice/topologycache/topologycache.go
"""

from collections.abc import Callable, Sequence

from kcm_cli.api.core import Node
from kcm_cli.component.clock import Clock
from kcm_cli.controllers.endpointslice.plan.desired import ZONE
from kcm_cli.controllers.endpointslice.plan.topology import Counts, Ratios, node_ready, overloaded, zone_ratios
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.worker import Worker
from kcm_cli.runtime.informer import AnyInformer, Informer
from kcm_cli.runtime.workqueue import WorkQueue

_KEY = "nodes"


class Zones:
    """The zones' shares, and the endpoints by zone of each Service that has topology hints.

    ``enqueue`` is called with the Services that a change of nodes leaves with too few endpoints in some zone.
    """

    def __init__(self, nodes: Informer[Node], enqueue: Callable[[str], None], clock: Clock) -> None:
        self._ratios: Ratios | None = None
        self._looked = False
        self._nodes = nodes.store
        self._enqueue = enqueue
        self._counts: dict[str, dict[str, Counts]] = {}
        self._hinted: set[str] = set()
        self._queue = WorkQueue("", clock)
        nodes.listen(on_add=self._changed, on_update=self._updated, on_delete=self._changed)

    def worker(self, context: ControllerContext, waits_for: Sequence[AnyInformer]) -> Worker:
        """Looks at the nodes anew whenever one has changed."""
        return context.worker(self._queue, self._look, count=1, waits_for=waits_for)

    @property
    def ratios(self) -> Ratios | None:
        """The zones' shares of the CPUs. The first that asks must not find nothing and take all hints away."""
        if not self._looked:
            self._count()
        return self._ratios

    def hinted(self, key: str) -> bool:
        """Whether the Service has been given hints."""
        return key in self._hinted

    def note(self, key: str, address_type: str, counts: Counts) -> None:
        """The Service has hints now: so many endpoints for each zone."""
        self._counts.setdefault(key, {})[address_type] = counts
        self._hinted.add(key)

    def forget(self, key: str, address_type: str) -> None:
        """The Service has no hints for this address type."""
        by_type = self._counts.get(key)
        if by_type is not None:
            by_type.pop(address_type, None)
            if not by_type:
                del self._counts[key]
        self._hinted.discard(key)

    async def _look(self, key: str) -> float | None:
        self._count()
        for service, by_type in tuple(self._counts.items()):
            if any(overloaded(counts, self._ratios) for counts in by_type.values()):
                self._enqueue(service)
        return None

    def _count(self) -> None:
        self._ratios = zone_ratios(self._nodes)
        self._looked = True

    def _changed(self, node: Node) -> None:
        self._queue.add(_KEY)

    def _updated(self, old: Node, new: Node) -> None:
        if node_ready(old) != node_ready(new) or old.labels.get(ZONE) != new.labels.get(ZONE):
            self._queue.add(_KEY)
