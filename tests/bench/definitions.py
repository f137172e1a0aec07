"""Definitions that are created, used and deleted in rounds, on a real kube-apiserver, with all controllers running.

    KUBEBUILDER_ASSETS=DIR python -m tests.bench.definitions [--definitions 500] [--rounds 3] [--keep FOLDER]

DIR has etcd and kube-apiserver. In each round every definition gets an owner with two dependents, and some are counted
by quotas; the owners are deleted, then the definitions. A JSON line for each step: seconds, what kcm took since the
last one (CPU), has (RSS, file descriptors) and logged, the watches of custom resources, and how long /healthz took at
most. Exit code 1 where something is left or miscounted.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.differential.compare import Server
from tests.differential.start_and_loss import PATIENT
from tests.hostile.work import Place
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import TOKEN, kubeconfig, real_server

NAMESPACE, SUFFIX = "work", "example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUPS, QUOTAS, COUNTED_EACH = 50, 5, 5
AT_ONCE = 12
LEFT_S, COUNTED_S, POLL_S = 300.0, 120.0, 1.0


@dataclass(frozen=True)
class Kind:
    """The custom kind of one definition, in the version of one round."""

    number: int
    version: str

    @property
    def group(self) -> str:
        return f"g{self.number % GROUPS}.{SUFFIX}"

    @property
    def plural(self) -> str:
        return f"w{self.number}s"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def definition(self) -> dict[str, Any]:
        """Whatever the objects have in them."""
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": self.version, "served": True, "storage": True, "schema": schema}
        names = {"plural": self.plural, "singular": f"w{self.number}", "kind": f"W{self.number}"}
        spec = {"group": self.group, "scope": "Namespaced", "names": names, "versions": [version]}
        return {"metadata": {"name": f"{self.plural}.{self.group}"}, "spec": spec}

    def doc(self, name: str, *owners: dict[str, Any]) -> dict[str, Any]:
        """One object."""
        metadata = {"name": name, "ownerReferences": list(owners)}
        return {"apiVersion": self.api_version, "kind": f"W{self.number}", "metadata": metadata}


class Health(threading.Thread):
    """Asks for /healthz again and again. ``worst_s``: since it was last set."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url, self.worst_s, self.failed = url, 0.0, 0

    def run(self) -> None:
        while True:
            started, status = time.monotonic(), 0
            with suppress(OSError):
                status = ask(f"{self._url}/healthz").status
            self.failed += status != 200
            self.worst_s = max(self.worst_s, time.monotonic() - started)
            time.sleep(0.3)


@dataclass
class Run:
    """One run. ``failed``: what went wrong."""

    place: Place
    url: str
    kcm: psutil.Process
    log: Path
    health: Health
    definitions: int
    failed: list[str] = field(default_factory=list)
    _since: tuple[float, float, int] = (0.0, 0.0, 0)

    async def all(self, rounds: int) -> None:
        self.step("start")
        await self.place.send("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for number in range(rounds):
            await self._round(number, f"v{number % 2 + 1}")
        await asyncio.sleep(30)
        self.step("rest")
        if self.health.failed:
            self.failed.append(f"/healthz failed {self.health.failed} times")

    def step(self, name: str) -> None:
        """Print what has happened since the last one."""
        before_s, before_cpu_s, before_size = self._since
        cpu_s, now, size = sum(self.kcm.cpu_times()[:2]), time.monotonic(), self.log.stat().st_size
        with self.log.open("rb") as log:
            log.seek(before_size)
            lines = log.read(size - before_size).splitlines()
        line = {
            "step": name,
            "seconds": round(now - before_s, 1) if before_s else 0.0,
            "cpu_s": round(cpu_s - before_cpu_s, 2),
            "rss_mib": round(self.kcm.memory_info().rss / 2**20),
            "fds": self.kcm.num_fds(),
            "watches": self._watches(),
            "healthz_max_ms": round(self.health.worst_s * 1e3),
            "log_lines": len(lines),
            "errors": sum(line.startswith(b"E") for line in lines),
        }
        print(json.dumps(line), flush=True)
        self._since, self.health.worst_s = (now, cpu_s, size), 0.0

    def _watches(self) -> int:
        lines = ask(f"{self.url}/metrics", token=TOKEN, timeout=60).text.splitlines()
        watching = (line for line in lines if line.startswith("apiserver_longrunning_requests{") and "WATCH" in line)
        return sum(int(line.rpartition(" ")[2]) for line in watching if f'{SUFFIX}"' in line)

    async def _round(self, number: int, version: str) -> None:
        kinds = [Kind(number, version) for number in range(self.definitions)]
        await _each(kinds, lambda kind: self.place.send(DEFINITIONS, kind.definition()))
        counted = [kind.plural + "." + kind.group for kind in kinds[:: len(kinds) // (QUOTAS * COUNTED_EACH) or 1]]
        quotas = {f"r{number}-{at}": counted[at::QUOTAS] for at in range(QUOTAS)}
        for name, names in quotas.items():
            quota = {"metadata": {"name": name}, "spec": {"hard": {f"count/{each}": "3" for each in names}}}
            await self.place.send(self.place.path("v1", "resourcequotas"), quota)
        await _each(kinds, self._use)
        self.step(f"{number} used")
        await self._until(COUNTED_S, self._counted_right, "quotas are wrong")
        self.step(f"{number} counted")
        await _each(kinds, lambda kind: self.place.delete(self.place.path(kind.api_version, kind.plural, "owner")))
        await self._until(LEFT_S, self._nothing_owned, "dependents are left")
        self.step(f"{number} collected")
        for name in quotas:
            await self.place.delete(self.place.path("v1", "resourcequotas", name))
        await _each(kinds, lambda kind: self.place.delete(f"{DEFINITIONS}/{kind.definition()['metadata']['name']}"))
        await self._until(LEFT_S, self._nothing_defined, "definitions are left")
        await self._until(LEFT_S, self._nothing_watched, "watches are left")
        self.step(f"{number} deleted")

    async def _use(self, kind: Kind) -> None:
        objects = self.place.path(kind.api_version, kind.plural)
        made = await self.place.send(objects, kind.doc("owner"))
        metadata: dict[str, Any] = dict(made["metadata"])
        owner = {"apiVersion": kind.api_version, "kind": made["kind"], "name": "owner", "uid": metadata["uid"]}
        await self.place.send(objects, kind.doc("child", owner))
        metadata = {"name": f"child-{kind.number}", "labels": {"of": "owner"}, "ownerReferences": [owner]}
        await self.place.send(self.place.path("v1", "configmaps"), {"metadata": metadata})

    async def _until(self, seconds: float, holds: Callable[[], Awaitable[bool]], otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while not await holds():
            if time.monotonic() > deadline:
                self.failed.append(otherwise)
                return
            await asyncio.sleep(POLL_S)

    async def _counted_right(self) -> bool:
        quotas: list[dict[str, Any]] = [*await self.place.items(self.place.path("v1", "resourcequotas"))]
        return all(
            (quota["status"].get("used") or {}).get(name) == "2" for quota in quotas for name in quota["spec"]["hard"]
        )

    async def _nothing_owned(self) -> bool:
        return not await self.place.items(self.place.path("v1", "configmaps"), "of%3Downer")

    async def _nothing_defined(self) -> bool:
        return not await self.place.items(DEFINITIONS)

    async def _nothing_watched(self) -> bool:
        return not await asyncio.to_thread(self._watches)


async def _each(kinds: list[Kind], do: Callable[[Kind], Awaitable[object]]) -> None:
    left = iter(kinds)

    async def work() -> None:
        for kind in left:
            await do(kind)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())


async def measure(url: str, folder: Path, args: argparse.Namespace) -> list[str]:
    """What went wrong on this API server; ``folder`` has the keys of its cluster, and gets the log."""
    config, port = folder / "kubeconfig", free_port()
    config.write_text(kubeconfig(url))
    flags = [f"--kubeconfig={config}", f"--secure-port={port}", *PATIENT]
    with Processes() as processes:
        process = processes.start(*KCM, *flags, log=folder / "kcm.log")
        own = f"https://127.0.0.1:{port}"
        await asyncio.to_thread(until, lambda: "namespace-controller" in ask(f"{own}/healthz?verbose").text)
        health = Health(own)
        health.start()
        async with Server(url, TOKEN) as server:
            place = Place(server, NAMESPACE)
            run = Run(place, url, psutil.Process(process.pid), folder / "kcm.log", health, args.definitions)
            await run.all(args.rounds)
    return run.failed


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--definitions", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="keep the logs in this folder")
    args = parser.parse_args()
    with ExitStack() as stack:
        folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        with real_server(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as url:
            failed = asyncio.run(measure(url, folder, args))
    for line in failed:
        print(f"FAILED {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
