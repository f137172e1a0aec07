"""process_* metrics of this process, and when it started."""

import asyncio
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

START = "process_start_time_seconds"
RESIDENT = "process_resident_memory_bytes"


_NETWORK = Path("/proc/self/net/netstat")
_UNLIMITED = float(2**64 - 1)
"""What Go's client library shows for no limit."""


class ProcessMetrics:
    """A collector; where the system has no /proc it shows nothing."""

    def __init__(self, network: Path = _NETWORK) -> None:
        self._collector = ProcessCollector(registry=None)
        self._network = network

    def collect(self) -> Iterator[Metric]:
        """All process_* families."""
        found = list(self._collector.collect())
        yield from found
        if found:
            limit, _ = resource.getrlimit(resource.RLIMIT_AS)
            yield GaugeMetricFamily(
                "process_virtual_memory_max_bytes",
                "Limit of the virtual memory in bytes.",
                value=_UNLIMITED if limit == resource.RLIM_INFINITY else limit,
            )
        for name, field in (("receive", "InOctets"), ("transmit", "OutOctets")):
            if (octets := self._octets(field)) is not None:
                help_ = "Bytes over the network, counted for the process's network namespace."
                yield CounterMetricFamily(f"process_network_{name}_bytes", help_, value=octets)

    def _octets(self, field: str) -> float | None:
        """A number of the IpExt lines: one with the names of the fields, one with their values."""
        try:
            rows = [row.split() for row in self._network.read_text().splitlines() if row.startswith("IpExt:")]
            return float(rows[1][rows[0].index(field)])
        except (OSError, ValueError, IndexError):
            return None

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


class Tasks:
    """The number of asyncio tasks under the name of Go's metric, which dashboards show."""

    def __init__(self, loops: Callable[[], tuple[asyncio.AbstractEventLoop, ...]]) -> None:
        self._loops = loops

    def collect(self) -> Iterator[Metric]:
        """One gauge."""
        count = sum(len(asyncio.all_tasks(loop)) for loop in self._loops())
        yield GaugeMetricFamily(
            "go_goroutines", "Number of asyncio tasks, kcm's equivalent of goroutines.", value=count
        )
