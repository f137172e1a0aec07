"""The informer_* metrics, computed when scraped.

upstream: staging/src/k8s.io/client-go/tools/cache/fifo_metrics.go, component-base/metrics/prometheus/clientgo/fifo
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric

from kcm_cli.component.metrics.instruments import Description, Gauge, help_text
from kcm_cli.component.metrics.registry import Registry

NAME = "kube-controller-manager"
_LABELS = ("group", "name", "resource", "version")
_QUEUED = Description(
    "informer_queued_items",
    "gauge",
    "How many changes wait to be handed out. Always 0: kcm hands each out as it comes.",
    _LABELS,
)
_VERSION = Description(
    "informer_store_resource_version", "gauge", "The resource version that the cache has come to.", _LABELS
)


@dataclass(frozen=True, slots=True)
class CacheState:
    """One cache: what it holds, and the resource version that it has come to."""

    group: str
    version: str
    resource: str
    at: int


States = Callable[[], Iterable[CacheState]]
"""Tells the present state of some caches; called on the server's thread."""


class InformerCollector:
    """The families of one manager, over the caches that it was told of."""

    def __init__(self, registry: Registry) -> None:
        self._sources: list[States] = []
        registry.add(self)

    def add(self, states: States) -> None:
        """Show these caches, too."""
        self._sources.append(states)

    def collect(self) -> Iterator[Metric]:
        """All families, or none while there is no cache."""
        found: dict[tuple[str, str, str], int] = {}
        for state in (state for states in tuple(self._sources) for state in states()):
            key = (state.group, state.resource, state.version)
            found[key] = max(state.at, found.get(key, 0))
        if found:
            yield _family(_QUEUED, dict.fromkeys(found, 0))
            yield _family(_VERSION, found)


def _family(description: Description, values: dict[tuple[str, str, str], int]) -> Metric:
    metric = Metric(description.name, help_text(description), description.kind)
    for (group, resource, version), value in sorted(values.items()):
        gauge, labels = Gauge(), {"group": group, "name": NAME, "resource": resource, "version": version}
        gauge.set(value)
        metric.samples.extend(gauge.samples(description.name, labels))
    return metric
