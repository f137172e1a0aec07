"""What a controller manager costs: seconds, CPU seconds and memory for a few loads, one JSON line each.

    make bench                                   a sandbox and kcm, each a process of its own
    python -m tests.bench.run --server URL --token T -- CMD...    any manager on any API server

``go`` in a line is what the Go binary took on the same kind of machine (2 cores): CPU seconds and pods a second.
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import psutil

GO = {
    "burst": {"cpu_s": [0.37, 0.54], "per_s": [730, 970]},
    "scaledown": {"cpu_s": [0.56, 0.60]},
    "wide": {"cpu_s": [1.24, 1.62], "per_s": [230, 310]},
    "cascade": {"cpu_s": [0.78, 1.09]},
    "configmaps": {"rss_growth_mib": 82},
    "startup": {"rss_mib": [117, 122]},
    "idle": {"cpu_s_per_min": 0.5, "rss_mib": [150, 179]},
}
PODS = 1000
START_S = 60.0
SETTLE_S = 2.0
"""What a load leaves behind (status writes, the namespaces of a new cluster) is not part of the next figure."""
LOADS = ("burst", "scaledown", "wide", "cascade", "configmaps", "idle")
AFTER = {"scaledown": "burst", "cascade": "wide"}
"""Loads that take away what another has made."""
Check = Callable[[], Awaitable[bool]]


def deployment(name: str, namespace: str, replicas: int) -> dict[str, Any]:
    env = [{"name": f"E{n}", "value": "v" * 20} for n in range(10)]
    requests = {"cpu": "100m", "memory": "64Mi"}
    container = {"name": "c", "image": "img", "env": env, "resources": {"requests": requests}}
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


class Api:
    """The few requests that a load takes."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._limit = asyncio.Semaphore(16)

    async def call(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict[str, Any]:
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, path, data=data, headers={"content-type": kind}) as answer:
            doc: dict[str, Any] = await answer.json()
            if answer.status >= 400 and answer.status not in (404, 409):
                raise RuntimeError(f"{method} {path}: {answer.status} {doc.get('message')}")
            return doc

    async def many(self, method: str, requests: list[tuple[str, object]]) -> None:
        async def one(path: str, body: object) -> None:
            async with self._limit:
                await self.call(method, path, body)

        await asyncio.gather(*(one(path, body) for path, body in requests))

    async def count(self, path: str) -> int:
        return len((await self.call("GET", f"{path}?resourceVersion=0"))["items"])


class Bench:
    """The manager under test, and one load after another."""

    def __init__(self, api: Api, command: list[str]) -> None:
        self._api = api
        self._command = command
        self._run = uuid.uuid4().hex[:6]
        self._process: psutil.Process | None = None

    async def all(self, scenarios: list[str]) -> None:
        try:
            await self.startup()
            for scenario in scenarios:
                await getattr(self, scenario)()
        finally:
            if self._process is not None:
                os.killpg(self._process.pid, signal.SIGTERM)
                self._process.wait(30)

    async def startup(self) -> None:
        name = await self._namespace("start", account=True)
        path = f"/apis/apps/v1/namespaces/{name}/deployments"
        await self._api.call("POST", path, deployment("d", name, 1))
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
        await self._api.call("DELETE", lease)
        started = time.monotonic()
        with Path(os.environ.get("BENCH_LOG", os.devnull)).open("ab") as log:
            process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        self._process = psutil.Process(process.pid)
        await self._until(self._pods(name, 1))
        self._say("startup", seconds=time.monotonic() - started, cpu_s=self._cpu(), rss_mib=self._rss())
        await asyncio.sleep(SETTLE_S)

    async def burst(self) -> None:
        self._big = name = await self._namespace("burst")
        path = f"/apis/apps/v1/namespaces/{name}/deployments"
        await self._measure(
            "burst", self._api.call("POST", path, deployment("big", name, PODS)), self._pods(name, PODS)
        )

    async def scaledown(self) -> None:
        path = f"/apis/apps/v1/namespaces/{self._big}/deployments/big"
        patch = self._api.call("PATCH", path, {"spec": {"replicas": 0}}, "application/merge-patch+json")
        await self._measure("scaledown", patch, self._pods(self._big, 0))

    async def wide(self) -> None:
        self._wide = name = await self._namespace("wide")
        path = f"/apis/apps/v1/namespaces/{name}/deployments"
        bodies = [(path, deployment(f"d{n}", name, 5)) for n in range(PODS // 5)]
        await self._measure("wide", self._api.many("POST", bodies), self._pods(name, PODS))
        await asyncio.sleep(SETTLE_S)

    async def cascade(self) -> None:
        path = f"/apis/apps/v1/namespaces/{self._wide}/deployments"
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self._measure("cascade", self._api.call("DELETE", path, options), self._pods(self._wide, 0))

    async def configmaps(self) -> None:
        name = await self._namespace("mem")
        before = self._rss()
        path = f"/api/v1/namespaces/{name}/configmaps"
        bodies = [(path, {"metadata": {"name": f"big{n}"}, "data": {"k": "v" * 524288}}) for n in range(100)]
        await self._api.many("POST", bodies)
        await asyncio.sleep(20)  # a cache that keeps them has them by now
        self._say("configmaps", rss_mib=self._rss(), rss_growth_mib=self._rss() - before)

    async def idle(self) -> None:
        await asyncio.sleep(10)  # for the last load's tail
        before = self._cpu()
        await asyncio.sleep(60)  # the minute that is measured
        self._say("idle", cpu_s_per_min=self._cpu() - before, rss_mib=self._rss())

    async def _measure(self, scenario: str, load: Awaitable[object], done: Check) -> None:
        cpu, started = self._cpu(), time.monotonic()
        await load
        await self._until(done)
        seconds = time.monotonic() - started
        self._say(scenario, seconds=seconds, per_s=PODS / seconds, cpu_s=self._cpu() - cpu, rss_mib=self._rss())

    async def _namespace(self, what: str, *, account: bool = False) -> str:
        name = f"bench-{self._run}-{what}"
        await self._api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        path = f"/api/v1/namespaces/{name}/serviceaccounts"
        if account:
            await self._api.call("POST", path, {"metadata": {"name": "default"}})

        async def there() -> bool:
            return (await self._api.call("GET", f"{path}/default")).get("kind") == "ServiceAccount"

        await self._until(there)
        return name

    def _pods(self, namespace: str, wanted: int) -> Check:
        async def check() -> bool:
            return await self._api.count(f"/api/v1/namespaces/{namespace}/pods") == wanted

        return check

    async def _until(self, check: Check, seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while not await check():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds} s")
            await asyncio.sleep(0.1)

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None
        return [self._process, *self._process.children(recursive=True)]

    def _cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._family())

    def _rss(self) -> float:
        return sum(process.memory_info().rss for process in self._family()) / 2**20

    def _say(self, scenario: str, **figures: float) -> None:
        line: dict[str, object] = {"scenario": scenario, **{key: round(value, 2) for key, value in figures.items()}}
        if scenario in GO:
            line["go"] = GO[scenario]
        print(json.dumps(line), flush=True)


async def measure(server: str, token: str, command: list[str], scenarios: list[str]) -> None:
    connector = aiohttp.TCPConnector(ssl=False, limit=64)
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(server, headers=headers, connector=connector, read_bufsize=2**22) as session:
        await Bench(Api(session), command).all(scenarios)


def with_sandbox(scenarios: list[str]) -> None:
    """Measure kcm on a sandbox, each in its own process."""
    kcm = [sys.executable, "-m", "kcm_cli.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        config, port = f"{folder}/kubeconfig", 16443
        options = ["--nodes", "0", "--no-manager", "--port", str(port), "--token", "bench", "--kubeconfig", config]
        sandbox = subprocess.Popen([*kcm, "sandbox", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(sandbox, Path(config))
            time.sleep(SETTLE_S)
            limits = ["--kube-api-qps", "5000", "--kube-api-burst", "10000"]
            command = [*kcm, "--kubeconfig", config, "--secure-port", "0", "--leader-elect=false", *limits]
            asyncio.run(measure(f"https://127.0.0.1:{port}", "bench", command, scenarios))
        finally:
            sandbox.terminate()
            sandbox.wait(20)


def _wait_for(sandbox: subprocess.Popen[bytes], config: Path) -> None:
    """Until the sandbox has written its kubeconfig, which it does when it serves. Ends the program if it cannot."""
    deadline = time.monotonic() + START_S
    while not config.exists():
        if sandbox.poll() is not None or time.monotonic() > deadline:
            sys.exit("The sandbox did not start; `kcm sandbox --port 16443` says why.")
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--token", default="")
    parser.add_argument("--scenarios", default=",".join(LOADS))
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- CMD, the manager to measure")
    args = parser.parse_args()
    scenarios = [name for name in args.scenarios.split(",") if name]
    for position, name in enumerate(scenarios):
        if name not in LOADS:
            parser.error(f"--scenarios: {name!r} is none of {', '.join(LOADS)}")
        if name in AFTER and AFTER[name] not in scenarios[:position]:
            parser.error(f"--scenarios: {name} needs {AFTER[name]} before it")
    if args.server:
        command = [word for word in args.command if word != "--"]
        asyncio.run(measure(args.server, args.token, command, scenarios))
    else:
        with_sandbox(scenarios)


if __name__ == "__main__":
    main()
