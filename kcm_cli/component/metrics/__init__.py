"""Metrics: instruments, registry, the Go library's text form, and the families that several layers share."""

from kcm_cli.component.metrics.instruments import (
    DEFAULT_BUCKETS,
    Counter,
    Family,
    Gauge,
    Histogram,
    Stability,
    exponential_buckets,
)
from kcm_cli.component.metrics.registry import Collector, MetricsOptions, Registry
from kcm_cli.component.metrics.rest_client import HostMetrics, RestClientMetrics
from kcm_cli.component.metrics.workqueue import WorkqueueCollector, WorkqueueMetrics

__all__ = [
    "DEFAULT_BUCKETS",
    "Collector",
    "Counter",
    "Family",
    "Gauge",
    "HostMetrics",
    "Histogram",
    "MetricsOptions",
    "Registry",
    "RestClientMetrics",
    "Stability",
    "WorkqueueCollector",
    "WorkqueueMetrics",
    "exponential_buckets",
]
