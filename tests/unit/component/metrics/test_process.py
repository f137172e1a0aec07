"""Metrics of the process."""

import asyncio
import resource
import sys
from pathlib import Path

import pytest

from kcm_cli.component.metrics.process import ProcessMetrics, Tasks

NETSTAT = "TcpExt: A B\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 3 40 50\n"


def values(process: ProcessMetrics) -> dict[str, float]:
    return {sample.name: sample.value for metric in process.collect() for sample in metric.samples}


def test_bytes_of_the_network(tmp_path: Path) -> None:
    (tmp_path / "netstat").write_text(NETSTAT)
    shown = values(ProcessMetrics(tmp_path / "netstat"))
    assert shown["process_network_receive_bytes_total"] == 40
    assert shown["process_network_transmit_bytes_total"] == 50


@pytest.mark.parametrize("text", [None, "", "IpExt: InOctets\n", "IpExt: InOctets\nIpExt: x\n", "IpExt: A\nIpExt: 1\n"])
def test_a_kernel_without_these_numbers(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "netstat").write_text(text)
    assert not any("network" in name for name in values(ProcessMetrics(tmp_path / "netstat")))


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc elsewhere")
@pytest.mark.parametrize("limit", [resource.RLIM_INFINITY, 2**40])
def test_the_limit_of_memory(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    shown = 1.8446744073709552e19 if limit == resource.RLIM_INFINITY else 2.0**40
    assert values(ProcessMetrics())["process_virtual_memory_max_bytes"] == shown


def test_tasks_of_all_loops() -> None:
    async def work() -> float:
        loop = asyncio.get_running_loop()
        other = asyncio.create_task(asyncio.Event().wait())
        (metric,) = Tasks(lambda: (loop,)).collect()
        other.cancel()
        return metric.samples[0].value

    assert asyncio.run(work()) == 2
