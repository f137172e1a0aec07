"""What quotas cost: 10 of them over a namespace of 10,000 pods of which 50 a second end, on a manager that runs the
resourcequota-controller only.

    python -m tests.bench.quota [--pods 10000] [--quotas 10] [--churn 50] [--seconds 30]

A sandbox and kcm run as processes. Two lines: without quotas, and with them; ``core`` is the share of a core that the
manager took while pods came and went, ``lag_max_s`` the longest time for which its loop did not turn (bucket bounds,
from the metric kcm_event_loop_lag_seconds), ``churned`` the pods a second that the sandbox really replaced.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

from tests.bench.api import Api
from tests.bench.objects import Doc, pod
from tests.bench.process import Manager, flags
from tests.kit.processes import KCM, free_port
from tests.kit.servers import TOKEN, sandbox_server

NAMESPACE = "quotas"
AT_ONCE = 16
_LAG = re.compile(r'^kcm_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)


def busy_pod(name: str) -> Doc:
    doc = pod(name, "n0")
    doc["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}}
    return doc


def quota(name: str) -> Doc:
    hard = {"pods": "99999", "requests.cpu": "99999", "requests.memory": "9Ti", "limits.cpu": "99999"}
    hard |= {"count/pods": "99999", "services": "99", "configmaps": "99"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}}


class Load:
    """Pods that come and go at a steady rate."""

    def __init__(self, api: Api, pods: int) -> None:
        self._api = api
        self._names = [f"p{number}" for number in range(pods)]
        self._next = pods
        self._free = asyncio.Semaphore(AT_ONCE)

    async def fill(self) -> None:
        await asyncio.gather(*(self._create(name) for name in self._names))

    async def churn(self, rate: float, seconds: float) -> float:
        """Replace so many pods a second; returns how many it really were."""
        started, done, pending = time.monotonic(), 0, set[asyncio.Task[None]]()
        while (passed := time.monotonic() - started) < seconds:
            while done < passed * rate:
                pending.add(asyncio.create_task(self._replace()))
                done += 1
            await asyncio.sleep(0.01)
        await asyncio.gather(*pending)
        return done / (time.monotonic() - started)

    async def _replace(self) -> None:
        gone, new = self._names.pop(0), f"p{self._next}"
        self._next += 1
        self._names.append(new)
        async with self._free:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{gone}"
            await self._api.call("DELETE", path, {"gracePeriodSeconds": 0})
        await self._create(new)

    async def _create(self, name: str) -> None:
        async with self._free:
            await self._api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", busy_pod(name))


async def lags(metrics: str) -> dict[float, float]:
    """How many looks at the clock were at most so many seconds late."""
    async with aiohttp.ClientSession() as session, session.get(metrics, ssl=False) as answer:
        return {float(bound): float(count) for bound, count in _LAG.findall(await answer.text())}


def longest(before: dict[float, float], after: dict[float, float]) -> float:
    """The bound of the bucket in which the longest delay between two scrapes was."""
    new = {bound: after[bound] - before.get(bound, 0.0) for bound in after}
    return min(bound for bound, count in new.items() if count == new[float("inf")])


async def measure(api: Api, command: list[str], metrics: str, args: argparse.Namespace) -> None:
    await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    account = {"metadata": {"name": "default"}}
    await api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", account)
    load = Load(api, args.pods)
    await load.fill()
    manager = Manager(command, metrics)
    try:
        await asyncio.sleep(5)
        for quotas in (0, args.quotas):
            before = await lags(metrics)
            cpu = manager.cpu_s()
            for number in range(quotas):
                await api.call("POST", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas", quota(f"q{number}"))
            await asyncio.sleep(8)
            started = await lags(metrics)
            line: dict[str, Any] = {"quotas": quotas, "pods": args.pods}
            line |= {"start_cpu_s": round(manager.cpu_s() - cpu, 2), "start_lag_max_s": longest(before, started)}
            cpu, since = manager.cpu_s(), time.monotonic()
            churned = await load.churn(args.churn, args.seconds)
            core = (manager.cpu_s() - cpu) / (time.monotonic() - since)
            line |= {"churned": round(churned, 1), "core": round(core, 4)}
            line |= {"lag_max_s": longest(started, await lags(metrics)), "rss_mib": round(manager.rss_mib())}
            print(json.dumps(line), flush=True)
    finally:
        manager.stop()


async def _session(url: str, command: list[str], metrics: str, args: argparse.Namespace) -> None:
    connector = aiohttp.TCPConnector(ssl=False, limit=64)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(url, headers=headers, connector=connector, read_bufsize=2**22) as session:
        await measure(Api(session), command, metrics, args)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--quotas", type=int, default=10)
    parser.add_argument("--churn", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sandbox_server(Path(name)) as url:
        port = free_port()
        command = [*KCM, *flags(Path(name), url, port), "--controllers=resourcequota-controller"]
        asyncio.run(_session(url, command, f"https://127.0.0.1:{port}/metrics", args))


if __name__ == "__main__":
    main()
