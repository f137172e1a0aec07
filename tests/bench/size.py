"""What a whole sandbox costs at size: seconds, CPU, memory, the longest turn of its loop, what its clients wait for.

    make size                                         all of these, without --apart
    python -m tests.bench.size ready                  30,000 pods of 30 Deployments on 300 nodes, until all are ready
    python -m tests.bench.size full                   100,000 pods, 5,000 nodes, 2,000 Services, until all is settled
    python -m tests.bench.size idle                   3,000 nodes, a minute of nothing
    python -m tests.bench.size --pods 3000 --nodes 30 --services 60 ready         other sizes
    python -m tests.bench.size --apart full           the manager is a process of its own, and connects over TLS
    python -m tests.bench.size --names full           what each long turn was, on asyncio's loop

A line of JSON for each case, and lines of progress on standard error. ``cpu_s``: of the sandbox with its manager and,
with --apart, of the manager alone. ``turns_ms``: the longest turns of the loop since the first object was made, in
CPU time (``tests.bench.timed``). ``healthz_ms``: the slowest answers of manager and API server of one request at a
time, ``list_ms``: of pages of 500 pods, of nodes and of Deployments; these two are asked by a process of its own, and
are seconds of the clock.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import psutil

from tests.bench import objects, performance
from tests.bench.api import Api
from tests.bench.process import OPTIONS
from tests.kit.processes import Processes, ask, free_port, until
from tests.kit.servers import TOKEN, kubeconfig

CASES = {"ready": (30_000, 300, 0), "full": (100_000, 5_000, 2_000), "idle": (0, 3_000, 0)}
"""Pods, nodes, Services."""
EACH = 1_000
"""Pods of a Deployment without a Service; one with a Service has its part of the pods."""
START_S, IDLE_S, SETTLE_S = 900.0, 60.0, 15.0
SAY_S = 10.0
LOOK_S = 2.0
"""Between two looks whether all is ready: a list of 2,000 Deployments is work for the sandbox, too."""
END_S, PAUSE_S = 0.1, 3.0
SETTLED = 0.3
"""The part of a core that all take at most once they have settled."""
LISTS = ("/api/v1/pods?limit=500", "/api/v1/nodes", "/apis/apps/v1/deployments", "/api/v1/namespaces/load/services")
Figures = dict[str, object]


@dataclass
class Slowest:
    """The slowest answers, in seconds by what was asked."""

    seconds: dict[str, float] = field(default_factory=dict)

    @asynccontextmanager
    async def timed(self, what: str) -> AsyncIterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[what] = max(self.seconds.get(what, 0.0), time.monotonic() - began)

    def ms(self) -> dict[str, int]:
        return {what: round(seconds * 1e3) for what, seconds in sorted(self.seconds.items())}


@dataclass
class Programs:
    """The processes: the sandbox and, apart from it, its manager. turns: the file of each, from ``tests.bench.timed``.
    health: what is asked for /healthz."""

    processes: dict[str, psutil.Process]
    turns: dict[str, Path]
    health: dict[str, str]

    def cpu_s(self) -> dict[str, float]:
        return {name: round(sum(process.cpu_times()[:2]), 2) for name, process in self.processes.items()}

    def rss_mib(self) -> dict[str, int]:
        return {name: process.memory_info().rss >> 20 for name, process in self.processes.items()}

    def longest(self, since: float, most: int = 8) -> dict[str, list[str]]:
        """The longest turns after a time, each as milliseconds, the thread, and what is known of it."""
        found = {}
        for name, path in self.turns.items():
            lines = [line.split(" ", 3) for line in path.read_text().splitlines()]
            late = sorted((float(ms), thread, what) for at, thread, ms, what in lines if float(at) >= since)
            found[name] = [f"{ms:.0f} {thread} {what}".strip() for ms, thread, what in reversed(late[-most:])]
        return found


class Asking:
    """One request for each list at a time, and one for health."""

    def __init__(self, session: aiohttp.ClientSession, health: dict[str, str]) -> None:
        self._session, self._health = session, health
        self._asked, self._listed = Slowest(), Slowest()

    async def run(self, end: Connection) -> None:
        """Until there is something to read, and answer what was found."""
        tasks = [asyncio.create_task(work) for work in (self._ask_health(), self._ask_lists())]
        while not end.poll():
            await asyncio.sleep(END_S)
        for task in tasks:
            task.cancel()
        end.send({"healthz_ms": self._asked.ms(), "list_ms": self._listed.ms()})

    async def _ask_health(self) -> None:
        timeout = aiohttp.ClientTimeout(120)
        while True:
            for name, url in self._health.items():
                async with self._asked.timed(name):
                    with suppress(aiohttp.ClientError, TimeoutError):
                        async with self._session.get(url, timeout=timeout) as answer:
                            await answer.read()
            await asyncio.sleep(0.2)

    async def _ask_lists(self) -> None:
        while True:
            for path in LISTS:
                async with self._listed.timed(path), self._session.get(path) as answer:
                    await answer.read()  # parsed by nobody, which would take longer than the answer
            await asyncio.sleep(PAUSE_S)


@contextmanager
def asking(url: str, health: dict[str, str]) -> Iterator[Figures]:
    """Ask in a process of its own: this one parses lists meanwhile, for up to 0.4 s. The figures are there at the
    end."""
    found: Figures = {}
    spawn = multiprocessing.get_context("spawn")
    ours, its = spawn.Pipe()
    process = spawn.Process(target=_ask, args=(url, health, its), daemon=True)
    process.start()
    try:
        yield found
        ours.send(None)
        found.update(ours.recv())
    finally:
        process.terminate()
        process.join()


def _ask(url: str, health: dict[str, str], end: Connection) -> None:
    async def run() -> None:
        async with _session(url) as session:
            await Asking(session, health).run(end)

    asyncio.run(run())


class Case:
    """One case on a sandbox that has just started."""

    def __init__(self, url: str, api: Api, programs: Programs) -> None:
        self._url, self._api, self._programs = url, api, programs
        self._began = time.monotonic()

    async def run(self, pods: int, nodes: int, services: int) -> Figures:
        await self._until(self._nodes_ready(nodes), "nodes ready", START_S)
        await self._settled()
        if not pods:
            return await self._idle()
        with asking(self._url, self._programs.health) as slowest:
            before, began = self._programs.cpu_s(), time.monotonic()
            await self._make(pods, services)
            await self._until(self._pods_ready(pods), "pods ready", START_S * 4)
            seconds, after = time.monotonic() - began, self._programs.cpu_s()
            await self._settled()
            settled = self._programs.cpu_s()
        return {
            "seconds": round(seconds, 1),
            "cpu_s": {name: round(after[name] - before[name], 1) for name in after},
            "cpu_ms_a_pod": {name: round((after[name] - before[name]) * 1e3 / pods, 2) for name in after},
            "settled_cpu_s": {name: round(settled[name] - before[name], 1) for name in after},
            "rss_mib": self._programs.rss_mib(),
            "turns_ms": self._programs.longest(began),
            **slowest,
        }

    async def _idle(self) -> Figures:
        before, began = self._programs.cpu_s(), time.monotonic()
        await asyncio.sleep(IDLE_S)
        after, seconds = self._programs.cpu_s(), time.monotonic() - began
        of_core = {name: round((after[name] - before[name]) / seconds * 100, 1) for name in after}
        return {"idle_percent": of_core, "rss_mib": self._programs.rss_mib()}

    async def _make(self, pods: int, services: int) -> None:
        await self._api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "load"}})
        await self._until(self._account, "a service account", 60)
        names = [f"d{number}" for number in range(services or max(1, pods // EACH))]
        sizes = [(pods + number) // len(names) for number in range(len(names))]
        made = [("/api/v1/namespaces/load/services", _service(name)) for name in names[:services]]
        docs = [objects.deployment(name, size) for name, size in zip(names, sizes, strict=True)]
        await self._api.many("POST", made + [("/apis/apps/v1/namespaces/load/deployments", doc) for doc in docs])

    async def _account(self) -> str:
        found = await self._api.call("GET", "/api/v1/namespaces/load/serviceaccounts/default")
        return "" if found.get("kind") == "ServiceAccount" else "none"

    def _nodes_ready(self, count: int) -> Callable[[], Awaitable[str]]:
        async def left() -> str:
            nodes = await self._api.items("/api/v1/nodes")
            ready = sum(_is_ready(node) and not node["spec"].get("taints") for node in nodes)
            return "" if ready == count else f"{ready} of {count} nodes"

        return left

    def _pods_ready(self, count: int) -> Callable[[], Awaitable[str]]:
        async def left() -> str:
            found = await self._api.items("/apis/apps/v1/namespaces/load/deployments")
            ready = sum(each.get("status", {}).get("readyReplicas", 0) for each in found)
            return "" if ready == count else f"{ready} of {count} pods"

        return left

    async def _settled(self) -> None:
        """Until the processes have had little to do for SETTLE_S."""
        while True:
            before = sum(self._programs.cpu_s().values())
            await asyncio.sleep(SETTLE_S)
            used = sum(self._programs.cpu_s().values()) - before
            if used < SETTLED * SETTLE_S:
                return
            self._say(f"settling, {used / SETTLE_S * 100:.0f} % of a core")

    async def _until(self, left: Callable[[], Awaitable[str]], what: str, seconds: float) -> None:
        deadline, said = time.monotonic() + seconds, time.monotonic()
        while lacking := await left():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {seconds:g} s")
            if time.monotonic() - said > SAY_S:
                said = time.monotonic()
                self._say(f"{what}: {lacking}")
            await asyncio.sleep(LOOK_S)
        self._say(what)

    def _say(self, what: str) -> None:
        cpu, rss = self._programs.cpu_s(), self._programs.rss_mib()
        sys.stderr.write(f"{time.monotonic() - self._began:7.1f} s  {what}; CPU {cpu}, MiB {rss}\n")


def _service(name: str) -> objects.Doc:
    """It selects the pods of the Deployment of this name."""
    doc = objects.service(name)
    doc["spec"]["selector"] = {"app": name}
    return doc


def _is_ready(node: objects.Doc) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def measure(case: str, sizes: tuple[int, int, int], *, apart: bool, names: bool) -> Figures:
    """A case on a sandbox of its own."""
    with tempfile.TemporaryDirectory() as place, Processes() as processes:
        folder, port, served = Path(place), free_port(), free_port()
        turns = {name: folder / f"{name}.turns" for name in ("sandbox", *(("manager",) if apart else ()))}
        for path in turns.values():
            path.touch()

        def start(name: str, *words: str) -> psutil.Process:
            timed = (sys.executable, "-m", "tests.bench.timed", str(turns[name]), *(("--names",) if names else ()))
            log = Path(os.environ.get("BENCH_LOG", str(folder))) / f"{name}.log"
            return psutil.Process(processes.start(*timed, *words, log=log).pid)

        url, health = f"https://127.0.0.1:{port}", f"https://127.0.0.1:{served}/healthz"
        options = (f"--port={port}", f"--nodes={sizes[1]}", f"--token={TOKEN}", f"--kubeconfig={folder}/admin")
        managed = (f"--secure-port={served}",)
        more = ("--no-manager",) if apart else ("--", *managed)
        running = {"sandbox": start("sandbox", "sandbox", "--no-view", *options, *more)}
        until(lambda: ask(f"{url}/readyz", token=TOKEN).status == 200, 120)
        if apart:
            (folder / "kubeconfig").write_text(kubeconfig(url))
            who = [f"--{part}kubeconfig={folder}/kubeconfig" for part in ("", "authentication-", "authorization-")]
            fast = [option for option in OPTIONS if option.startswith("--kube-api-")]
            running["manager"] = start("manager", *who, f"--cert-dir={folder}/m", *managed, *fast)
        programs = Programs(running, turns, {"manager": health, "API server": f"{url}/healthz"})
        return asyncio.run(_run(url, programs, sizes))


async def _run(url: str, programs: Programs, sizes: tuple[int, int, int]) -> Figures:
    async with _session(url) as session:
        return await Case(url, Api(session), programs).run(*sizes)


def _session(url: str) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=False, limit=64)
    headers = {"authorization": f"Bearer {TOKEN}"}
    return aiohttp.ClientSession(url, headers=headers, connector=connector, timeout=aiohttp.ClientTimeout(600))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--services", type=int)
    parser.add_argument("--apart", action="store_true", help="the manager is a process of its own")
    parser.add_argument("--names", action="store_true", help="say what the long turns were")
    parser.add_argument("cases", nargs="*", metavar="CASE", default=[*CASES], help=f"of {', '.join(CASES)}")
    parser.add_argument("--write", action="store_true", help="write the sandbox's figures in docs/performance.md")
    args = parser.parse_args()
    found: list[Figures] = []
    for case in args.cases:
        if case not in CASES:
            parser.error(f"{case!r} is none of {', '.join(CASES)}")
        given = (args.pods, args.nodes, args.services)
        sizes = tuple(usual if one is None else one for one, usual in zip(given, CASES[case], strict=True))
        pods, nodes, services = sizes
        figures = measure(case, (pods, nodes, services), apart=args.apart, names=args.names)
        found.append({"case": case, "pods": pods, "nodes": nodes, "services": services, **figures})
        print(json.dumps(found[-1]), flush=True)
    if args.write:
        performance.write_sandbox(found)


if __name__ == "__main__":
    main()
