"""Ordinary work beside hostile tenants, and behind a proxy that spoils what passes: a table, and 1 where it suffers.

    python -m tests.hostile.run --seed 1 --objects 2000 --seconds 60 [--assets DIR]      (make hostile)

On a sandbox, or on the kube-apiserver of DIR (or KUBEBUILDER_ASSETS). The phases: work alone; work while odd objects
are created; work while the proxy is hostile, which has to be done soon after that ends; work while watches that failed
are opened again; and work after that, beside all odd objects. How long each piece may take is bounded.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from tests.differential.compare import Server
from tests.hostile.objects import (
    LIMITED_NAMESPACE,
    ODD_NAMESPACES,
    WIDGETS_DEFINITION,
    Odd,
    OddObjects,
    collections,
    deep_objects,
    group_version,
)
from tests.hostile.proxy import Proxy
from tests.hostile.work import WORK, Place, Rounds, Work
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import TOKEN, kubeconfig, real_server, sandbox_server

ALONE, BESIDE, FAULTS, SETTLING, AFTER = "alone", "odd objects", "faults", "settling", "after"
LIMIT_S = 40.0
"""Generous: the machine may be busy. The usual time is a second or two."""
SLOWER = 10
"""And a machine that is very busy is slow in the first phase, too: so many times the slowest piece there is added."""
LEADS_S = 240.0
SETTLE_S = 75.0
"""A watch that failed again and again is opened again within a minute, as client-go's reflectors do."""
ROUND_S = 15.0
"""The next round begins after that at the latest: one slow piece does not end the others' work."""
AT_ONCE = 4
DEFINED_S = 20
LAST_LINES = 5
BOUND = {"pods": "100", "persistentvolumeclaims": "150", "count/jobs.batch": "400"}
"""Of each hostile namespace: what absurd numbers of replicas may come to, as a cluster's owner would limit them."""
RSS_MIB, RSS_KIB_AN_OBJECT = 150, 60
PATIENT = ("--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s")
"""Where requests wait for more than ten seconds in vain, since the machine is busy, a manager ends as it has to."""


@dataclass(frozen=True)
class Options:
    """``objects``: accepted ones; ``seconds``: of faults; ``rounds``: of the works, before and after."""

    seed: int
    objects: int
    seconds: float
    rounds: int = 2
    works: tuple[Work, ...] = WORK


@dataclass
class Report:
    """What was seen."""

    times: dict[str, dict[str, list[float]]]
    failed: list[str]
    accepted: "Counter[str]" = field(default_factory=Counter)
    refused: int = 0
    statuses: int = 0
    spoilt: "Counter[str]" = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    rss_mib: dict[str, float] = field(default_factory=dict)
    undecodable: float = 0.0
    deep: "Counter[str]" = field(default_factory=Counter)

    def table(self) -> Table:
        """A row for each phase."""
        made = Table("phase", "seconds", "pieces of work", "usual s", "worst s", "of", "RSS MiB after")
        for phase, works in self.times.items():
            found = sorted((seconds, work) for work, all_ in works.items() for seconds in all_)
            usual, worst = found[len(found) // 2], found[-1]
            figures = (f"{usual[0]:.1f}", f"{worst[0]:.1f}", worst[1], f"{self.rss_mib[phase]:.0f}")
            made.add_row(phase, f"{self.seconds[phase]:.0f}", str(len(found)), *figures)
        return made


class Manager:
    """The kcm process that the run is about."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self._process = process
        self._log = log
        self.url = f"https://127.0.0.1:{port}"

    def healthy(self) -> bool:
        return ask(f"{self.url}/healthz", timeout=5).status == 200

    def leads(self) -> bool:
        return "namespace-controller" in ask(f"{self.url}/healthz?verbose", timeout=5).text

    def alive(self) -> bool:
        return self._process.poll() is None

    def ended(self) -> str:
        """How it ended."""
        return f"kcm has ended, exit code {self._process.returncode}:{self.last_words()}"

    def last_words(self) -> str:
        """The last lines of its log."""
        return "".join(f"\n  {line}" for line in self._log.read_text(errors="replace").splitlines()[-LAST_LINES:])

    def rss_mib(self) -> float:
        return float(psutil.Process(self._process.pid).memory_info().rss / 2**20) if self.alive() else 0.0

    def undecodable(self) -> float:
        """All of kcm_undecodable_objects_total."""
        lines = ask(f"{self.url}/metrics", timeout=20).text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("kcm_undecodable_objects_total"))


@dataclass
class Run:
    """One run against a server that is there. ``folder`` has the keys of its cluster; ``direct`` is asked past the
    proxy."""

    options: Options
    proxy: Proxy
    manager: Manager
    direct: Server
    report: Report
    rounds: Rounds

    async def all(self) -> None:
        """All phases, one after the other."""
        await self.rounds.prepare()
        await self._phase(ALONE, LIMIT_S, asyncio.sleep(0), self.options.rounds)
        async with asyncio.timeout(SETTLE_S):
            await self._prepare_odd()
        more_s = SLOWER * max(
            (took for all_ in self.report.times.get(ALONE, {}).values() for took in all_), default=0.0
        )
        await self._phase(BESIDE, LIMIT_S + more_s, self._create_odd())
        await self._phase(FAULTS, self.options.seconds + SETTLE_S + more_s, self._faults())
        await self._phase(SETTLING, SETTLE_S + more_s, asyncio.sleep(0))
        await self._phase(AFTER, LIMIT_S + more_s, asyncio.sleep(0), self.options.rounds)
        self._judge()

    async def _phase(self, name: str, limit_s: float, beside: Coroutine[Any, Any, None], rounds: int = 1) -> None:
        """Rounds of work, so many at least, until what goes on beside them has ended."""
        started = time.monotonic()
        print(f"{name}, {sum(self.report.accepted.values())} odd objects", file=sys.stderr, flush=True)
        async with asyncio.TaskGroup() as group:
            other = group.create_task(beside)
            while rounds > 0 or not other.done():
                rounds -= 1
                one = group.create_task(self.rounds.round(name, limit_s))
                await asyncio.wait((one,), timeout=ROUND_S)
        self.report.seconds[name] = time.monotonic() - started
        self.report.rss_mib[name] = self.manager.rss_mib()

    async def _faults(self) -> None:
        self.proxy.faults = True
        await asyncio.sleep(self.options.seconds)
        self.proxy.faults = False

    # -- the hostile tenants

    async def _prepare_odd(self) -> None:
        for namespace in (*ODD_NAMESPACES, LIMITED_NAMESPACE):
            place = Place(self.direct, namespace)
            await place.send("/api/v1/namespaces", {"metadata": {"name": namespace}})
            bound = {"metadata": {"name": "bound"}, "spec": {"hard": BOUND}}
            await place.send(place.path("v1", "resourcequotas"), bound)
            item = place.path("v1", "resourcequotas", "bound")
            await place.until_found(item, lambda doc: (doc.get("status") or {}).get("hard"))
            await place.until_found(place.path("v1", "serviceaccounts", "default"), bool)

    async def _create_odd(self) -> None:
        """Create until enough are accepted; give some a status, and delete a few."""
        schemas = {}
        for version in {group_version(collection) for collection in collections()}:
            answer = await self.direct.ask("GET", f"/openapi/v3/{version}")
            if answer.status == 200:
                schemas[version] = answer.body["components"]["schemas"]
        rng = random.Random(self.options.seed)
        source = OddObjects(rng, schemas)

        async def create() -> None:
            tried = 0
            while sum(self.report.accepted.values()) < self.options.objects:
                tried += 1
                assert tried < 20 * self.options.objects + 100, "nearly nothing is accepted"
                await self._create(source.draw(), rng)

        async with asyncio.TaskGroup() as group:
            group.create_task(self._create_deep())
            for _ in range(AT_ONCE):
                group.create_task(create())

    async def _create_deep(self) -> None:
        """What nests deeply, or has text that is not UTF-8; the sandbox refuses the deepest of them."""
        await self.direct.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGETS_DEFINITION)
        for collection, body in deep_objects():
            answer = await self.direct.ask("POST", f"/{collection}", body)
            for _ in range(DEFINED_S):
                if answer.status != 404:  # the definition is not served yet
                    break
                await asyncio.sleep(1)
                answer = await self.direct.ask("POST", f"/{collection}", body)
            if answer.status == 201:
                self.report.deep[collection.rpartition("/")[2]] += 1

    async def _create(self, odd: Odd, rng: random.Random) -> None:
        answer = await self.direct.ask("POST", f"/{odd.collection}", odd.body)
        if answer.status != 201:
            self.report.refused += 1
            return
        self.report.accepted[odd.collection.rpartition("/")[2]] += 1
        item = f"/{odd.collection}/{odd.name}"
        if odd.status is not None:
            changed = await self.direct.ask("PUT", f"{item}/status", {**answer.body, "status": odd.status})
            self.report.statuses += changed.status == 200
        if rng.random() < 0.05:
            await self.direct.ask("DELETE", item, {"propagationPolicy": rng.choice(("Foreground", "Orphan"))})

    def _judge(self) -> None:
        failed, rss = self.report.failed, self.report.rss_mib
        bound = rss[ALONE] + RSS_MIB + self.options.objects * RSS_KIB_AN_OBJECT / 1024
        self.report.spoilt = self.proxy.done
        if not self.manager.alive():
            failed.append(self.manager.ended())
            return
        if rss[AFTER] > bound:
            failed.append(f"RSS is {rss[AFTER]:.0f} MiB, more than {bound:.0f} MiB")
        if not self.manager.healthy():
            failed.append("/healthz is not ok")
        self.report.undecodable = self.manager.undecodable()
        if not self.report.undecodable:
            failed.append("kcm_undecodable_objects_total did not move")


async def hostile(url: str, folder: Path, options: Options) -> Report:
    """Run against a server; ``folder`` has the keys of its cluster, and gets the manager's log."""
    proxy, direct = Proxy(url, options.seed), Server(url, TOKEN)
    report = Report({}, [])
    async with proxy.running(), direct:
        with _manager(proxy.url, folder) as manager:
            await asyncio.to_thread(until, manager.leads, LEADS_S, why=manager.last_words)
            await Run(
                options, proxy, manager, direct, report, Rounds(direct, options.works, report.times, report.failed)
            ).all()
    return report


@contextmanager
def _manager(url: str, folder: Path) -> Iterator[Manager]:
    port, config = free_port(), folder / "kubeconfig"
    config.write_text(kubeconfig(url))
    names = ("root-ca-file=ca.crt", "service-account-private-key-file=sa.key")
    names += ("cluster-signing-cert-file=ca.crt", "cluster-signing-key-file=ca.key")
    flags = [f"--{flag}={folder}/{name}" for flag, name in (pair.split("=") for pair in names)]
    flags += [f"--kubeconfig={config}", f"--secure-port={port}", f"--cert-dir={folder}"]
    flags += [*PATIENT, "--authorization-always-allow-paths=/healthz,/metrics"]
    flags += ["--horizontal-pod-autoscaler-sync-period=2s"]
    flags += ["--node-monitor-grace-period=1h", "--node-startup-grace-period=1h"]  # there are no kubelets
    with Processes() as processes:
        log = folder / "kcm.log"
        yield Manager(processes.start(*KCM, *flags, log=log), port, log)


def on_sandbox(folder: Path, options: Options) -> Report:
    """On a sandbox without nodes and manager."""
    data = folder / "data"
    with sandbox_server(folder, f"--data-dir={data}") as url:
        return asyncio.run(hostile(url, data / "pki", options))


def on_real(assets: Path, folder: Path, options: Options) -> Report:
    """On the kube-apiserver of a folder."""
    with real_server(assets, folder) as url:
        return asyncio.run(hostile(url, folder, options))


def show(report: Report) -> None:
    """Print what was seen."""
    kinds = len(report.accepted)
    print(f"{sum(report.accepted.values())} odd objects of {kinds} kinds accepted ({report.statuses} with a status of")
    print(f"theirs), {report.refused} refused; {report.undecodable:g} times one could not be decoded")
    print(f"{sum(report.deep.values())} of {len(report.deep)} kinds that nest deeply, or are not UTF-8, accepted")
    print("spoilt:", ", ".join(f"{count} {name}" for name, count in sorted(report.spoilt.items())))
    Console().print(report.table())
    for line in report.failed:
        print(f"FAILED {line}")


def main() -> int:
    """The exit code: 1 where work suffered."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--assets", type=Path, default=os.environ.get("KUBEBUILDER_ASSETS") or None)
    parser.add_argument("--keep", type=Path, help="keep the logs in this folder")
    args = parser.parse_args()
    options = Options(args.seed, args.objects, args.seconds)
    with ExitStack() as stack:
        folder = args.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        report = on_real(args.assets, folder, options) if args.assets else on_sandbox(folder, options)
    show(report)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
