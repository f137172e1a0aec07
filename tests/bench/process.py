"""The manager under test: what it costs, and how often it writes."""

import os
import re
import signal
import subprocess
from pathlib import Path

import aiohttp
import psutil

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

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(30)

    def cpu_s(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._family())

    def rss_mib(self) -> float:
        return sum(process.memory_info().rss for process in self._family()) / 2**20

    async def writes(self) -> int:
        """Requests that write, Events included, since the start; 0 where they cannot be counted."""
        if not self._metrics:
            return 0
        async with aiohttp.ClientSession() as session, session.get(self._metrics, ssl=False) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{self._metrics}: {answer.status}")
            return sum(int(float(value)) for value in _WRITES.findall(await answer.text()))

    def _family(self) -> list[psutil.Process]:
        return [self._process, *self._process.children(recursive=True)]
