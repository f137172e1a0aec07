"""The metrics of a manager: families by name, as the metrics flags allow.

There is one registry per manager, passed as an argument and never global, so that two managers in one process (the
sandbox, a simulation) do not mix their metrics. Any collector that is written for prometheus_client can be added.

upstream: staging/src/k8s.io/component-base/metrics/registry.go, opts.go
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import msgspec

from kcm_cli.component.metrics.exposition import expose
from kcm_cli.component.metrics.families import Families, family
from kcm_cli.component.metrics.instruments import (
    UNEXPECTED,
    Counter,
    Description,
    Family,
    Gauge,
    Histogram,
    Instrument,
    Stability,
)

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

C = TypeVar("C", bound=Instrument)
AnyFamily = Family[Counter] | Family[Gauge] | Family[Histogram]


class Collector(Protocol):
    """Computes families when scraped."""

    def collect(self) -> Families:
        """The current families."""


class MetricsOptions(msgspec.Struct, frozen=True):
    """The metrics flags. ``allowed_labels``: metric name, label name, values."""

    allowed_labels: Mapping[str, Mapping[str, frozenset[str]]] = msgspec.field(default_factory=dict)
    disabled: frozenset[str] = frozenset()
    show_hidden: bool = False


class Registry:
    """The metrics of one manager. ``about_itself``: whether metrics about metrics are shown."""

    def __init__(self, options: MetricsOptions | None = None, *, about_itself: bool = True) -> None:
        self._options = options or MetricsOptions()
        self._collectors: dict[Collector, None] = {}
        self._families: dict[str, AnyFamily] = {}
        self._odd = set[tuple[str, str, str]]()
        self._registered: Family[Counter] | None = None
        self._registered = self.counter(
            "registered_metrics_total",
            "Number of registered metrics, by stability and the version that deprecated them.",
            labels=("deprecated_version", "stability_level"),
            stability=Stability.BETA,
        )
        self._unexpected = self.counter(
            "cardinality_enforcement_unexpected_categorizations_total",
            "Number of label values outside the allowed set, which are counted as 'unexpected'.",
        ).labels()
        self._disabled = self.counter(
            "disabled_metrics_total", "Number of metrics disabled by flags.", stability=Stability.BETA
        ).labels()
        self._hidden = self.counter(
            "hidden_metrics_total",
            "Number of metrics that are hidden because they are deprecated.",
            stability=Stability.BETA,
        ).labels()
        self._silent = frozenset() if about_itself else frozenset(self._families)

    def counter(
        self, name: str, text: str, *, labels: tuple[str, ...] = (), stability: Stability = Stability.ALPHA
    ) -> Family[Counter]:
        """The counter of this name, created by the first call. Raises ValueError where it exists and differs."""
        return self.register(Description(name, "counter", text, labels, stability), Counter)

    def gauge(
        self, name: str, text: str, *, labels: tuple[str, ...] = (), stability: Stability = Stability.ALPHA
    ) -> Family[Gauge]:
        """The gauge of this name, created by the first call. Raises ValueError where it exists and differs."""
        return self.register(Description(name, "gauge", text, labels, stability), Gauge)

    def histogram(
        self,
        name: str,
        text: str,
        buckets: tuple[float, ...],
        *,
        labels: tuple[str, ...] = (),
        stability: Stability = Stability.ALPHA,
    ) -> Family[Histogram]:
        """The histogram of this name, created by the first call. Raises ValueError where it exists and differs."""
        description = Description(name, "histogram", text, labels, stability, buckets=buckets)
        return self.register(description, lambda: Histogram(buckets))

    def register(self, description: Description, make: Callable[[], C]) -> Family[C]:
        """Register a family. A disabled or hidden one works, but is never shown. Raises ValueError if the name is taken
        by a different one.
        """
        known = self._families.get(description.name)
        if known is not None:
            if known.description != description:
                raise ValueError(f"metric {description.name} is registered twice, differently")
            return cast(Family[C], known)
        made = Family(description, make)
        self._families[description.name] = cast("Family[Counter]", made)
        allowed = self._options.allowed_labels.get(description.name)
        if allowed:
            made.allow(allowed, self._unexpected.inc)
        if description.name in self._options.disabled:
            self._disabled.inc()
        elif description.is_hidden and not self._options.show_hidden:
            self._hidden.inc()
        else:
            self.add(made)
            if self._registered is not None:
                self._registered.labels(description.deprecated_version, description.stability.value).inc()
        return made

    def families(self) -> tuple[AnyFamily, ...]:
        """All families that are declared, shown or not."""
        return tuple(self._families.values())

    def add(self, collector: Collector) -> None:
        """Add a collector."""
        self._collectors[collector] = None

    def remove(self, collector: Collector) -> None:
        """Remove a collector."""
        del self._collectors[collector]

    def expose(self) -> bytes:
        """The text of /metrics. May be called from any thread."""
        silent = self._options.disabled | self._silent
        found = (metric for collector in tuple(self._collectors) for metric in collector.collect())
        return expose(self._constrained(metric) for metric in found if metric.name not in silent)

    def _constrained(self, metric: "Metric") -> "Metric":
        """A collector's family with allowed values of labels alone; series that then have the same labels are added up.
        (A declared family does that as its series are made.)"""
        allowed = self._options.allowed_labels.get(metric.name)
        if not allowed or metric.name in self._families:
            return metric
        sums: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for sample in metric.samples:
            labels = tuple((label, self._value_of(metric.name, label, value)) for label, value in sample.labels.items())
            sums[sample.name, labels] = sums.get((sample.name, labels), 0.0) + sample.value
        lines = [(name, dict(labels), value) for (name, labels), value in sums.items()]
        return family(metric.name, metric.documentation, metric.type, lines)

    def _value_of(self, metric: str, label: str, value: str) -> str:
        allowed = self._options.allowed_labels[metric].get(label)
        if allowed is None or value in allowed:
            return value
        if (metric, label, value) not in self._odd:
            self._odd.add((metric, label, value))
            self._unexpected.inc()
        return UNEXPECTED
