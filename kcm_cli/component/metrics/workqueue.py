"""The workqueue_* metrics: one object per queue, updated by the queue, read by a scrape.

Times are the queue's (seconds, monotonic), so that they are virtual on virtual time; ``monotonic`` reads a
scrape the present. The two gauges about unfinished work are computed when scraped, not twice a second as
upstream does.

upstream: staging/src/k8s.io/client-go/util/workqueue/metrics.go, component-
base/metrics/prometheus/workqueue
"""

from collections.abc import Callable, Sequence
from itertools import chain

from kcm_cli.component.metrics.families import Families, family
from kcm_cli.component.metrics.instruments import (
    Counter,
    Description,
    Gauge,
    Histogram,
    Instrument,
    Stability,
    exponential_buckets,
    help_text,
)
from kcm_cli.component.metrics.registry import Registry

_BUCKETS = exponential_buckets(1e-8, 10, 10)
_BETA = Stability.BETA
_LABELS = ("name",)
_ADDS = Description("workqueue_adds_total", "counter", "Number of items added to the queue.", _LABELS, _BETA)
_DEPTH = Description("workqueue_depth", "gauge", "Number of items waiting in the queue.", _LABELS, _BETA)
_LONGEST = Description(
    "workqueue_longest_running_processor_seconds",
    "gauge",
    "For how many seconds the oldest item in work has been worked on.",
    _LABELS,
    _BETA,
)
_UNFINISHED = Description(
    "workqueue_unfinished_work_seconds",
    "gauge",
    "Seconds spent so far on the items in work, added up. A large value means stuck workers.",
    _LABELS,
    _BETA,
)
_RETRIES = Description("workqueue_retries_total", "counter", "Number of items that were requeued.", _LABELS, _BETA)
_WAITED = Description(
    "workqueue_queue_duration_seconds",
    "histogram",
    "Seconds an item waits before it is worked on.",
    _LABELS,
    _BETA,
)
_WORKED = Description(
    "workqueue_work_duration_seconds", "histogram", "Seconds that working on an item takes.", _LABELS, _BETA
)


class WorkqueueMetrics:
    """Metrics of one queue, which reports every step with its depth after the step and the time."""

    __slots__ = ("_monotonic", "_started", "_waiting", "adds", "depth", "name", "retries", "waited", "worked")

    def __init__(self, name: str, monotonic: Callable[[], float]) -> None:
        self.name = name
        self.adds = Counter()
        self.depth = Gauge()
        self.retries = Counter()
        self.waited = Histogram(_BUCKETS)
        self.worked = Histogram(_BUCKETS)
        self._monotonic = monotonic
        self._waiting: dict[str, float] = {}
        self._started: dict[str, float] = {}

    def added(self, key: str, depth: int, now: float) -> None:
        """A key was added that was not waiting before (it may be in work)."""
        self.adds.value += 1
        self.depth.value = depth
        if key not in self._waiting:
            self._waiting[key] = now

    def taken(self, key: str, depth: int, now: float) -> float:
        """A worker took the key. Returns the seconds that it waited."""
        self.depth.value = depth
        self._started[key] = now
        since = self._waiting.pop(key, None)
        if since is None:
            return 0.0
        self.waited.observe(now - since)
        return now - since

    def finished(self, key: str, now: float) -> None:
        """The worker is done with the key, with or without an error."""
        since = self._started.pop(key, None)
        if since is not None:
            self.worked.observe(now - since)

    def retried(self) -> None:
        """A key was requeued after a delay."""
        self.retries.value += 1

    def running_s(self) -> list[float]:
        """For how long each key in work has been worked on. Any thread."""
        now = self._monotonic()
        return [now - since for since in tuple(self._started.values())]


class WorkqueueCollector:
    """The workqueue_* families of one manager. ``queue`` gives a queue its metrics."""

    def __init__(self, registry: Registry) -> None:
        self._queues: dict[str, WorkqueueMetrics] = {}
        registry.add(self)

    def queue(self, name: str, monotonic: Callable[[], float]) -> WorkqueueMetrics:
        """Metrics for the queue of this name.

        A second queue of the name takes the first one's place in a scrape.
        """
        metrics = self._queues[name] = WorkqueueMetrics(name, monotonic)
        return metrics

    def queues(self) -> list[WorkqueueMetrics]:
        """The metrics of all queues, by name."""
        return [self._queues[name] for name in sorted(self._queues)]

    def collect(self) -> Families:
        """All families, or none while there is no queue."""
        queues = self.queues()
        if not queues:
            return
        running = [queue.running_s() for queue in queues]
        yield from _family(_ADDS, queues, [queue.adds for queue in queues])
        yield from _family(_DEPTH, queues, [queue.depth for queue in queues])
        yield from _family(_LONGEST, queues, [_gauge(max(ages, default=0.0)) for ages in running])
        yield from _family(_UNFINISHED, queues, [_gauge(sum(ages)) for ages in running])
        yield from _family(_RETRIES, queues, [queue.retries for queue in queues])
        yield from _family(_WAITED, queues, [queue.waited for queue in queues])
        yield from _family(_WORKED, queues, [queue.worked for queue in queues])


def _family(description: Description, queues: list[WorkqueueMetrics], series: Sequence[Instrument]) -> Families:
    pairs = zip(queues, series, strict=True)
    lines = chain.from_iterable(one.samples(description.name, {"name": queue.name}) for queue, one in pairs)
    yield family(description.name, help_text(description), description.kind, lines)


def _gauge(value: float) -> Gauge:
    gauge = Gauge()
    gauge.set(value)
    return gauge
