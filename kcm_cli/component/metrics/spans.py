"""How many spans are exported. Without OpenTelemetry, so that the metric is known where its packages are missing."""

from collections.abc import Mapping

from kcm_cli.component.metrics.instruments import Counter
from kcm_cli.component.metrics.registry import Registry

EXPORTED, FAILED, FULL = "exported", "failed", "queue_full"


def span_counters(registry: Registry) -> Mapping[str, Counter]:
    """The numbers of spans by their result."""
    family = registry.counter(
        "kcm_trace_spans_total",
        "Spans of sampled traces by result: exported, failed (the collector did not take them), queue_full.",
        labels=("result",),
    )
    return {result: family.labels(result) for result in (EXPORTED, FAILED, FULL)}
