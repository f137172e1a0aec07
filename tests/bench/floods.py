"""What floods cost the others who ask, and the process that is flooded: one JSON line for each kind.

    python -m tests.bench.floods [--target manager|sandbox] [--seconds 10] [--connections 500] [--source 127.0.0.1,...]
        [KIND ...]
    KUBEBUILDER_ASSETS=DIR python -m tests.bench.floods --program DIR/kube-controller-manager

``source``: from where the flood comes; the others ask from 127.0.0.1. ``new_ms`` and ``kept_ms``: how long /healthz
took on a new connection each, with its handshake, and on one that was kept: median, 99th percentile, greatest;
``work_ms``: the CPU that the flooded process took between a request and its answer, the latency that a core of its own
would have left. ``lost``: requests that had no answer. ``rss_mib``: resident memory before, at most, and 2 s after.
``lease_s``: the greatest time between two renewals of the leader's lease. CPU seconds are those of the flooded process
and, beside them, the attacker's (at the lowest priority) and the askers', who share the machine.
"""

import argparse
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

from tests.bench.flood import KINDS
from tests.kit.places import ROOT
from tests.kit.processes import KCM, Processes, ask, free_port, insecure, until
from tests.kit.servers import TOKEN, sandbox_server

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
PAUSE_S = 0.05
AFTER_S = 2.0
LEADS_S = 60.0


@dataclass
class Asker:
    """Asks for /healthz again and again on its own thread."""

    pid: int
    port: int
    kept: bool
    took_s: list[float] = field(default_factory=list)
    work_s: list[float] = field(default_factory=list)
    lost: int = 0

    def run(self, done: threading.Event) -> None:
        connection, context = None, insecure()
        while not done.wait(PAUSE_S):
            started, cpu_s = time.monotonic(), _exact_cpu_s(self.pid)
            try:
                if connection is None:
                    connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
                connection.request("GET", "/healthz", headers={"authorization": f"Bearer {TOKEN}"})
                if connection.getresponse().read() != b"ok":
                    self.lost += 1
            except (OSError, http.client.HTTPException):
                self.lost += 1
                connection = None
            self.took_s.append(time.monotonic() - started)
            self.work_s.append(_exact_cpu_s(self.pid) - cpu_s)
            if connection is not None and not self.kept:
                connection.close()
                connection = None

    def summary(self, seconds: list[float]) -> list[float]:
        ordered = sorted(1000 * one for one in seconds) or [0.0]
        return [round(one, 1) for one in (median(ordered), ordered[int(len(ordered) * 0.99)], ordered[-1])]


@dataclass
class Watcher:
    """Looks at the memory of a process, and at the lease that it holds."""

    process: psutil.Process
    api: str
    most: int = 0
    lease_s: float = 0.0

    def run(self, done: threading.Event) -> None:
        renewed, since = "", time.monotonic()
        while not done.wait(0.1):
            self.most = max(self.most, self.process.memory_info().rss)
            if not self.api:
                continue
            seen = ask(self.api + LEASE, token=TOKEN).doc["spec"]["renewTime"]
            now = time.monotonic()
            if seen != renewed:
                renewed, since = seen, now
            self.lease_s = max(self.lease_s, now - since)


def measure(kind: str, process: psutil.Process, port: int, api: str, options: argparse.Namespace) -> dict[str, object]:
    """One flood (or none: "nothing") and what was seen meanwhile."""
    askers = [Asker(process.pid, port, kept) for kept in (False, True)]
    watcher, done = Watcher(process, api), threading.Event()
    before, cpu_s, own_s = process.memory_info().rss, _cpu_s(process), time.process_time()
    runs = [*(one.run for one in askers), watcher.run]
    threads = [threading.Thread(target=run, args=(done,)) for run in runs]
    for thread in threads:
        thread.start()
    attacker: dict[str, object] = {}
    if kind == "nothing":
        time.sleep(options.seconds)
    else:
        numbers = [str(port), str(options.seconds), str(options.connections)]
        words = [sys.executable, "-m", "tests.bench.flood", kind, *numbers, *options.source.split(",")]
        output = subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT).stdout
        attacker = json.loads(output)
    cpu_s = _cpu_s(process) - cpu_s
    done.set()
    for thread in threads:
        thread.join()
    time.sleep(AFTER_S)
    rss = [round(one / 2**20, 1) for one in (before, watcher.most, process.memory_info().rss)]
    new, kept = askers
    line: dict[str, object] = {"flood": kind}
    for name, asker in (("new", new), ("kept", kept)):
        line[f"{name}_ms"], line[f"{name}_work_ms"] = asker.summary(asker.took_s), asker.summary(asker.work_s)
    line |= {"asked": len(new.took_s) + len(kept.took_s), "lost": new.lost + kept.lost, "rss_mib": rss}
    if api:
        line["lease_s"] = round(watcher.lease_s, 1)
    line |= {"cpu_s": round(cpu_s, 2), "askers_cpu_s": round(time.process_time() - own_s, 2), "attacker": attacker}
    return {**line, "load": round(os.getloadavg()[0], 1)}


@contextlib.contextmanager
def manager(program: str, folder: Path) -> Iterator[tuple[psutil.Process, int, str]]:
    """A manager that leads on a sandbox: its process, its port, and the sandbox's URL."""
    port = free_port()
    command = (program,) if program else KCM
    with sandbox_server(folder) as url, Processes() as processes:
        config = f"{folder}/sandbox"
        clients = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
        words = [*clients, f"--secure-port={port}", "--leader-elect-resource-lock=leases", f"--cert-dir={folder}/c"]
        started = processes.start(*command, *words, log=folder / "manager.log")
        until(lambda: "deployment" in ask(f"https://127.0.0.1:{port}/healthz?verbose").text, LEADS_S)
        time.sleep(AFTER_S)
        yield psutil.Process(started.pid), port, url


@contextlib.contextmanager
def sandbox(program: str, folder: Path) -> Iterator[tuple[psutil.Process, int, str]]:
    """A sandbox: its process and its port."""
    with sandbox_server(folder) as url:
        port = int(url.rpartition(":")[2])
        found = next(one for one in psutil.net_connections() if one.status == "LISTEN" and one.laddr[1] == port)
        time.sleep(AFTER_S)
        yield psutil.Process(found.pid), port, ""


def _exact_cpu_s(pid: int) -> float:
    """Of a process, in nanoseconds' steps: the clock that clock_getcpuclockid(3) names."""
    return time.clock_gettime((~pid << 3) | 2)


def _cpu_s(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))


def main() -> None:
    """Print a line for each flood."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=("manager", "sandbox"), default="manager")
    parser.add_argument("--program", default="", help="another manager than kcm")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--source", default="127.0.0.1")
    parser.add_argument("kinds", nargs="*", help=", ".join(("nothing", *KINDS)))
    options = parser.parse_args()
    target = manager if options.target == "manager" else sandbox
    with tempfile.TemporaryDirectory() as folder, target(options.program, Path(folder)) as (process, port, api):
        for kind in options.kinds or ("nothing", *KINDS):
            print(json.dumps(measure(kind, process, port, api, options)), flush=True)


if __name__ == "__main__":
    main()
