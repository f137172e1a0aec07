"""The manager under test: what it costs, and how often it writes."""

import os
import re
import signal
import subprocess
from pathlib import Path

import aiohttp
import psutil

from tests.kit.servers import kubeconfig

OPTIONS = (
    *("--authorization-always-allow-paths=/metrics", "--kube-api-qps=5000", "--kube-api-burst=10000"),
    *("--node-monitor-grace-period=1h", "--node-startup-grace-period=1h"),
)
_WRITES = re.compile(
    r'^rest_client_requests_total\{[^}]*method="(?:POST|PUT|PATCH|DELETE)"[^}]*\} (\S+)$', re.MULTILINE
)


class Manager:
    """A process and its children. ``metrics``: where it serves /metrics, if its writes are to be counted."""

    def __init__(self, command: list[str], metrics: str, env: dict[str, str] | None = None) -> None:
        self._metrics = metrics
        with Path(os.environ.get("BENCH_LOG", os.devnull)).open("ab") as log:
            started = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=env)
        self._process = psutil.Process(started.pid)

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self._process.pid, number)

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        self._process.wait(30)

    def cpu_s(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._family())

    def rss_mib(self) -> float:
        return sum(int(process.memory_info().rss) for process in self._family()) / 2**20

    def sockets(self) -> int:
        return sum(len(process.net_connections("inet")) for process in self._family())

    def threads(self) -> int:
        return sum(process.num_threads() for process in self._family())

    async def writes(self) -> int:
        """Requests that write, Events included, since the start; 0 where they cannot be counted."""
        if not self._metrics:
            return 0
        return sum(int(float(value)) for value in _WRITES.findall(await self._scraped()))

    async def series(self) -> int:
        """How many lines with a value /metrics has."""
        return sum(not line.startswith("#") for line in (await self._scraped()).splitlines())

    async def _scraped(self) -> str:
        async with aiohttp.ClientSession() as session, session.get(self._metrics, ssl=False) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{self._metrics}: {answer.status}")
            return await answer.text()

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]


def flags(folder: Path, url: str, port: int) -> list[str]:
    """Of a manager on the API server at this URL, which serves its metrics at this port."""
    config = folder / "kubeconfig"
    config.write_text(kubeconfig(url))
    clients = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
    places = [f"--cert-dir={folder}/manager", f"--secure-port={port}", "--leader-elect-resource-lock=leases"]
    return [*clients, *places, "--authentication-skip-lookup", *OPTIONS]
