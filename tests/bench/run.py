"""What a controller manager costs: time, CPU of the manager and the API server, memory, writes. A JSON line per load.

    make bench                                          kcm on a sandbox
    KUBEBUILDER_ASSETS=DIR make bench                   kcm and kube-controller-manager by turns, on a kube-apiserver
    make bench ARGS="--against main~3"                  kcm as it is and as it was at a commit, by turns
    make bench ARGS="--causes --rounds 5"               kcm as it is, without its record of causes, and with spans
    make bench ARGS="--sizes 1000,10000 --write"        other sizes; docs/performance.md is written anew
    python -m tests.bench.run --server URL --token T [--metrics URL] -- CMD...    any manager on any API server

DIR has etcd, kube-apiserver and kube-controller-manager. Each program has a fresh API server in each round, and the
order of the programs changes from round to round; last lines have the medians. ``writes`` are the requests that write,
Events included; with --server they are counted where --metrics says that the manager serves its metrics to everybody
(--authorization-always-allow-paths=/metrics). The loads need no kubelets; nodes have to outlive that nobody renews
them (--node-monitor-grace-period=1h).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import aiohttp
import psutil

from tests.bench import performance
from tests.bench.api import Api
from tests.bench.loads import AFTER, LOADS, Bench, Say
from tests.bench.process import Manager, flags
from tests.kit.collector import collecting
from tests.kit.places import ROOT
from tests.kit.processes import KCM, free_port
from tests.kit.servers import TOKEN, real_server, sandbox_server

ROWS = LOADS[: LOADS.index("configmaps") + 1]
"""Loads of a bench beside other programs."""
Figures = dict[str, float]


@dataclass
class Program:
    """A manager to measure."""

    name: str
    command: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    figures: dict[str, list[Figures]] = field(default_factory=dict)
    """For each load, those of each round."""

    def say(self, scenario: str, figures: Figures) -> None:
        self.figures.setdefault(scenario, []).append(figures)
        _print(self.name, scenario, figures)

    def medians(self) -> dict[str, Figures]:
        return {
            scenario: {key: median(one[key] for one in rounds) for key in rounds[0]}
            for scenario, rounds in self.figures.items()
        }


async def measure(url: str, token: str, start: Callable[[], Manager], say: Say, scenarios: list[str]) -> None:
    """All loads on the API server at this URL."""
    connector = aiohttp.TCPConnector(ssl=False, limit=64)
    headers = {"authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, headers=headers, connector=connector, read_bufsize=2**22) as session:
        await Bench(Api(session), start, _listener(url), say).all(scenarios)


def one_round(program: Program, assets: str, scenarios: list[str]) -> None:
    """A program on an API server of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        server = real_server(Path(assets), folder) if assets else sandbox_server(folder)
        with server as url:
            command = [*program.command, *flags(folder, url, port)]
            metrics, env = f"https://127.0.0.1:{port}/metrics", {**os.environ, **program.env}
            asyncio.run(measure(url, TOKEN, lambda: Manager(command, metrics, env), program.say, scenarios))


@contextmanager
def recording() -> Iterator[list[Program]]:
    """kcm as it is, without the record of causes, and with spans that a collector takes."""
    with collecting() as collector, tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        config = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
        endpoint = {"endpoint": f"127.0.0.1:{collector.port}", "samplingRatePerMillion": 1_000_000}
        json.dump({**config, **endpoint}, file)
        file.flush()
        yield [
            Program("kcm", KCM),
            Program("kcm without the record of causes", (sys.executable, "-m", "tests.bench.without_causes")),
            Program("kcm with spans", (*KCM, f"--tracing-config-file={file.name}")),
        ]


@contextmanager
def programs(assets: str, against: str, *, causes: bool) -> Iterator[list[Program]]:
    """kcm as it is, and those beside it."""
    if causes:
        with recording() as made:
            yield made
        return
    found = [Program("kcm", KCM)]
    if assets:
        found.append(Program("kube-controller-manager", (f"{assets}/kube-controller-manager",)))
    if not against:
        yield found
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = f"{folder}/kcm"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, against], check=True, cwd=ROOT)
        try:
            # compiled once, as the other is; it is imported before the installed package
            subprocess.run([sys.executable, "-m", "compileall", "-q", f"{tree}/kcm_cli"], check=True)
            yield [*found, Program(f"kcm at {against}", KCM, {"PYTHONPATH": tree, "PYTHONSAFEPATH": "1"})]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True, cwd=ROOT)


def beside(args: argparse.Namespace, scenarios: list[str], sizes: list[int]) -> None:
    """All programs, round by round; each size on an API server of its own."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    with programs(assets, args.against, causes=args.causes) as there:
        for number in range(args.rounds):
            for program in there if number % 2 else reversed(there):
                one_round(program, assets, scenarios)
                for size in sizes:
                    one_round(program, assets, [f"pods={size}", f"restart={size}"])
        medians = {program.name: program.medians() for program in there}
    for name, loads in medians.items():
        for scenario, figures in loads.items():
            _print(f"{name}, median", scenario, figures)
    if args.write:
        performance.write(medians, args.rounds)


def _listener(url: str) -> psutil.Process | None:
    """The process of this machine that listens on the URL's port."""
    port = int(url.rpartition(":")[2])
    there = [one.pid for one in psutil.net_connections("tcp") if one.status == "LISTEN" and one.laddr.port == port]
    return psutil.Process(there[0]) if there and there[0] else None


def _print(program: str, scenario: str, figures: Figures) -> None:
    rounded = {key: round(value, 3) for key, value in figures.items()}
    print(json.dumps({"program": program, "scenario": scenario, **rounded}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server")
    parser.add_argument("--token", default="")
    parser.add_argument("--metrics", default="")
    parser.add_argument("--scenarios", help="of " + ", ".join(LOADS))
    parser.add_argument("--sizes", default="", help="numbers of pods: created, then a restart on them")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--against", default="", help="a commit of kcm")
    parser.add_argument("--causes", action="store_true", help="beside kcm without its record of causes, and with spans")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- CMD, the manager to measure")
    args = parser.parse_args()
    words = ",".join(ROWS) if args.scenarios is None else args.scenarios
    scenarios = [name for name in words.split(",") if name]
    for position, name in enumerate(scenarios):
        if name not in LOADS:
            parser.error(f"--scenarios: {name!r} is none of {', '.join(LOADS)}")
        if name in AFTER and AFTER[name] not in scenarios[:position]:
            parser.error(f"--scenarios: {name} needs {AFTER[name]} before it")
    if args.server:
        command = [word for word in args.command if word != "--"]
        program = Program("manager", tuple(command))
        start = lambda: Manager(command, args.metrics)  # noqa: E731
        asyncio.run(measure(args.server, args.token, start, program.say, scenarios))
    else:
        beside(args, scenarios, [int(size) for size in args.sizes.split(",") if size])


if __name__ == "__main__":
    main()
