"""process_* metrics of this process, and when it started."""

import asyncio
import resource
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kcm_cli.component.metrics.families import Families, family

if TYPE_CHECKING:
    from prometheus_client.process_collector import ProcessCollector


START = "process_start_time_seconds"
RESIDENT = "process_resident_memory_bytes"


_NETWORK = Path("/proc/self/net/netstat")
_UNLIMITED = float(2**64 - 1)
"""What Go's client library shows for no limit."""


class ProcessMetrics:
    """A collector; where the system has no /proc it shows nothing."""

    def __init__(self, network: Path = _NETWORK) -> None:
        self._network = network

    def collect(self) -> Families:
        """All process_* families."""
        found = list(_collector().collect())
        yield from found
        if found:
            limit, _ = resource.getrlimit(resource.RLIMIT_AS)
            name, most = "process_virtual_memory_max_bytes", _UNLIMITED if limit == resource.RLIM_INFINITY else limit
            yield family(name, "Limit of the virtual memory in bytes.", "gauge", [(name, {}, most)])
        for name, field in (("receive", "InOctets"), ("transmit", "OutOctets")):
            if (octets := self._octets(field)) is not None:
                help_ = "Bytes over the network, counted for the process's network namespace."
                total = f"process_network_{name}_bytes_total"
                yield family(total, help_, "counter", [(total, {}, octets)])

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

    def collect(self) -> Families:
        """The start time."""
        return (metric for metric in self._process.collect() if metric.name == START)


class Tasks:
    """The number of asyncio tasks under the name of Go's metric, which dashboards show."""

    def __init__(self, loops: Callable[[], tuple[asyncio.AbstractEventLoop, ...]]) -> None:
        self._loops = loops

    def collect(self) -> Families:
        """One gauge."""
        count = sum(len(asyncio.all_tasks(loop)) for loop in self._loops())
        name = "go_goroutines"
        yield family(name, "Number of asyncio tasks, kcm's equivalent of goroutines.", "gauge", [(name, {}, count)])


@cache
def _collector() -> "ProcessCollector":
    # imported here: the first scrape needs it
    from prometheus_client.process_collector import ProcessCollector

    return ProcessCollector(registry=None)
