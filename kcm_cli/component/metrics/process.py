"""process_* metrics of this process, and when it started."""

from collections.abc import Iterable, Iterator

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

START = "process_start_time_seconds"
RESIDENT = "process_resident_memory_bytes"


class ProcessMetrics:
    """A collector; where the system has no /proc it shows nothing."""

    def __init__(self) -> None:
        self._collector = ProcessCollector(registry=None)

    def collect(self) -> Iterable[Metric]:
        """All process_* families."""
        return self._collector.collect()

    def value(self, name: str) -> float:
        """The number of one family, 0 if there is none."""
        return next((metric.samples[0].value for metric in self.collect() if metric.name == name), 0.0)


class StartTimeOnly:
    """The one process family that /metrics/slis shows."""

    def __init__(self, process: ProcessMetrics) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """The start time."""
        return (metric for metric in self._process.collect() if metric.name == START)
