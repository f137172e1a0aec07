"""The informer_* metrics, computed when scraped.

upstream: staging/src/k8s.io/client-go/tools/cache/fifo_metrics.go, component-base/metrics/prometheus/clientgo/fifo
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from kcm_cli.component.metrics.families import Families, Line, family
from kcm_cli.component.metrics.instruments import Description, Gauge, Histogram, Instrument, help_text
from kcm_cli.component.metrics.registry import Registry

NAME = "kube-controller-manager"
_LABELS = ("group", "name", "resource", "version")
_QUEUED = Description(
    "informer_queued_items",
    "gauge",
    "Number of changes waiting for listeners. Always 0: kcm calls listeners at once.",
    _LABELS,
)
HANDLING_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_HANDLING = Description(
    "informer_processing_latency_seconds",
    "histogram",
    "Seconds that it takes to put a change into the cache and notify the listeners.",
    _LABELS,
)
_VERSION = Description(
    "informer_store_resource_version", "gauge", "The resource version that the cache has reached.", _LABELS
)


Key = tuple[str, str, str]


class CacheState(msgspec.Struct, frozen=True):
    """The state of one cache: its objects, its resource version, and how long changes took."""

    group: str
    version: str
    resource: str
    at: int
    handling: Histogram


States = Callable[[], Iterable[CacheState]]
"""The present state of some caches; called on the server's thread."""


class InformerCollector:
    """The families of one manager, over the caches that are registered."""

    def __init__(self, registry: Registry) -> None:
        self._sources: list[States] = []
        registry.add(self)

    def add(self, states: States) -> None:
        """Add caches."""
        self._sources.append(states)

    def collect(self) -> Families:
        """All families, or none while there is no cache. Caches of one resource are shown as one."""
        queued: dict[Key, Gauge] = {}
        versions: dict[Key, Gauge] = {}
        handling: dict[Key, Histogram] = {}
        for state in (state for states in tuple(self._sources) for state in states()):
            key = (state.group, state.resource, state.version)
            queued.setdefault(key, Gauge())
            version = versions.setdefault(key, Gauge())
            version.set(max(state.at, version.value))
            handling.setdefault(key, Histogram(HANDLING_BUCKETS)).add(state.handling)
        if queued:
            yield from _family(_HANDLING, handling)
            yield from _family(_QUEUED, queued)
            yield from _family(_VERSION, versions)


def _family(description: Description, series: Mapping[Key, Instrument]) -> Families:
    lines: list[Line] = []
    for (group, resource, version), one in sorted(series.items(), key=lambda item: item[0]):
        labels = {"group": group, "name": NAME, "resource": resource, "version": version}
        lines.extend(one.samples(description.name, labels))
    yield family(description.name, help_text(description), description.kind, lines)
