"""Measures how managers start, lose their API server and end, on a real kube-apiserver, and prints a table.

    KUBEBUILDER_ASSETS=DIR python -m tests.differential.start_and_loss [--early 60] [--restarts 20] [ROW ...]

DIR has etcd, kube-apiserver and kube-controller-manager. Each row of the table is one run per program. What the
figures mean: seconds, and the exit code where the manager ended.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.kit.link import Link
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import TOKEN, RealServer, kubeconfig, restartable_server

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LONG_S = 60.0
DEPLOYMENTS_SCALED = 20
PATIENT = (
    *("--leader-elect-lease-duration=90s", "--leader-elect-renew-deadline=60s"),
    "--authorization-always-allow-paths=/healthz,/debug/*",
)
"""So that a slow start of the API server costs nobody the lease, and that profiles are shown."""


@dataclass
class Manager:
    """One process of a manager behind a link."""

    process: "subprocess.Popen[bytes]"
    port: int

    def serves(self) -> bool:
        return ask(f"https://127.0.0.1:{self.port}/healthz", timeout=2).status == 200

    def leads(self) -> bool:
        return "deployment-controller" in ask(f"https://127.0.0.1:{self.port}/healthz?verbose", timeout=2).text

    def end(self) -> str:
        """SIGTERM; how long that took."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> str:
        """Wait for its end; how long that took."""
        started = time.monotonic()
        try:
            code = self.process.wait(LONG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return f"not within {LONG_S:.0f} s"
        return f"{time.monotonic() - started:.1f} s, exit {code}"


@dataclass
class Bench:
    """One program, and the API server that it works with."""

    program: tuple[str, ...]
    server: RealServer
    link: Link
    folder: Path
    processes: Processes
    options: argparse.Namespace
    made: int = field(default=0)

    @property
    def url(self) -> str:
        return self.server.url

    def start(self, *more: str) -> Manager:
        """A manager that reaches the API server over the link. ``more``: of its flags."""
        self.made += 1
        config, port = self.folder / "kubeconfig", free_port()
        config.write_text(kubeconfig(self.link.url))
        flags = [f"--kubeconfig={config}", f"--secure-port={port}", "--leader-elect-resource-lock=leases", *more]
        logs = Path(self.options.logs) if self.options.logs else self.folder
        log = logs / f"{Path(self.program[0]).name}-{self.made}.log"
        return Manager(self.processes.start(*self.program, *flags, log=log), port)

    def leader(self, *more: str) -> Manager:
        self.link.join()
        self.free()
        manager = self.start(*more)
        until(manager.leads, LONG_S)
        return manager

    def free(self) -> None:
        """Delete the lease of those before."""
        ask(self.url + LEASE, token=TOKEN, method="DELETE")

    def works(self) -> bool:
        """Whether a new Deployment gets its ReplicaSet."""
        name = self.deployment()
        sets = f"{self.url}/apis/apps/v1/namespaces/default/replicasets?labelSelector=app%3D{name}"
        until(lambda: ask(sets, token=TOKEN).doc["items"], LONG_S)
        return True

    def deployment(self) -> str:
        """Create one, of a replica; its name, and that of its label ``app``."""
        name = f"d{time.monotonic_ns()}"
        labels = {"app": name}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}}
        spec["template"] = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
        assert ask(self.url + DEPLOYMENTS, token=TOKEN, method="POST", body=body).status == 201
        return name

    def scale(self, name: str, replicas: int) -> None:
        """Ask for so many replicas."""
        path = f"{self.url}{DEPLOYMENTS}/{name}/scale"
        body = ask(path, token=TOKEN).doc
        body["spec"]["replicas"] = replicas
        del body["metadata"]["resourceVersion"]
        assert ask(path, token=TOKEN, method="PUT", body=body).status == 200

    def pods(self, name: str) -> int:
        """How many there are of a Deployment."""
        pods = f"{self.url}/api/v1/namespaces/default/pods?labelSelector=app%3D{name}"
        return len(ask(pods, token=TOKEN).doc["items"])

    def lease(self) -> dict[str, Any]:
        """What the lease says."""
        return dict(ask(self.url + LEASE, token=TOKEN).doc["spec"])


def early(bench: Bench) -> str:
    """started before its API server"""
    bench.free()
    bench.link.cut()
    manager = bench.start()
    until(manager.serves, 20)
    time.sleep(bench.options.early)
    if manager.process.poll() is not None:
        return f"exit {manager.process.returncode} before that"
    bench.link.join()
    started = time.monotonic()
    until(manager.leads, LONG_S)
    leads_s = time.monotonic() - started
    bench.works()
    return f"leads {leads_s:.1f} s after it is there, works ({manager.end()} on SIGTERM)"


def restarts(bench: Bench) -> str:
    """API server unreachable for 2 s, again and again"""
    manager = bench.leader()
    for _ in range(bench.options.restarts):
        bench.link.cut()
        time.sleep(2)
        bench.link.join()
        time.sleep(3)
    if manager.process.poll() is not None:
        return f"exit {manager.process.returncode}"
    started = time.monotonic()
    bench.works()
    return f"leads throughout, a Deployment has its ReplicaSet after {time.monotonic() - started:.1f} s"


def killed(bench: Bench) -> str:
    """API server killed (-9) and started again, again and again, Deployments scaled meanwhile"""
    manager = bench.leader(*PATIENT)
    names, holder = [bench.deployment() for _ in range(DEPLOYMENTS_SCALED)], bench.lease()["holderIdentity"]
    until(lambda: all(bench.pods(name) for name in names), LONG_S)
    before, slowest_s = _size(manager), 0.0
    for turn in range(bench.options.restarts):
        wanted = turn % 3 + 2
        for name in names[: DEPLOYMENTS_SCALED // 2]:
            bench.scale(name, wanted)
        bench.server.kill()  # while the manager is at it
        bench.server.start()
        started = time.monotonic()
        for name in names[DEPLOYMENTS_SCALED // 2 :]:
            bench.scale(name, wanted)
        until(partial(_have, bench, names, wanted), 2 * LONG_S)
        slowest_s = max(slowest_s, time.monotonic() - started)
        if turn == 1:
            before = _size(manager)
        if manager.process.poll() is not None:
            return f"exit {manager.process.returncode} after {turn + 1} times"
    lease, after = bench.lease(), _size(manager)
    kept = "lease kept" if lease["holderIdentity"] == holder else "lease lost"
    until(bench.works, LONG_S)
    grown = f"{before[0]} to {after[0]} MiB, {before[1]} to {after[1]} descriptors, {before[2]} to {after[2]} tasks"
    return f"{kept}, all pods there at most {slowest_s:.1f} s after it is ready; {grown}"


def _have(bench: Bench, names: list[str], wanted: int) -> bool:
    return all(bench.pods(name) == wanted for name in names)


def _size(manager: Manager) -> tuple[int, int, int]:
    """Resident MiB, open descriptors, and tasks (goroutines)."""
    process = psutil.Process(manager.process.pid)
    profile = ask(f"https://127.0.0.1:{manager.port}/debug/pprof/goroutine?debug=1").text
    return process.memory_info().rss >> 20, process.num_fds(), int(profile.split("total ", 1)[1].split()[0])


def dead(bench: Bench) -> str:
    """leading, the API server is gone for good"""
    manager = bench.leader()
    bench.link.cut()
    return manager.ended()


def hangs(bench: Bench) -> str:
    """leading, the API server accepts and never answers"""
    manager = bench.leader()
    bench.link.hang()
    return manager.ended()


def stolen(bench: Bench) -> str:
    """leading, the lease names another holder"""
    manager = bench.leader()
    patch = '{"spec":{"holderIdentity":"another"}}'
    words = ["patch", "lease", "kube-controller-manager", "-n", "kube-system", "--type=merge", "-p", patch]
    login = [f"--server={bench.url}", f"--token={TOKEN}", "--insecure-skip-tls-verify"]
    subprocess.run([_asset("kubectl"), *login, *words], check=True, stdout=subprocess.DEVNULL)
    return manager.ended()


def term_before(bench: Bench) -> str:
    """SIGTERM before there is an API server"""
    bench.link.cut()
    manager = bench.start()
    until(manager.serves, 20)
    time.sleep(3)
    return manager.end()


def term_hanging(bench: Bench) -> str:
    """SIGTERM while the API server hangs from the start"""
    bench.link.hang()
    manager = bench.start()
    until(manager.serves, 20)
    time.sleep(3)
    return manager.end()


def term_standby(bench: Bench) -> str:
    """SIGTERM as a standby"""
    bench.leader()
    standby = bench.start()
    until(standby.serves, 20)
    time.sleep(3)
    return standby.end()


def term_leading(bench: Bench) -> str:
    """SIGTERM while leading"""
    return bench.leader().end()


def term_dead(bench: Bench) -> str:
    """SIGTERM while leading, 2 s after the API server is gone"""
    manager = bench.leader()
    bench.link.cut()
    time.sleep(2)
    return manager.end()


def term_leading_hanging(bench: Bench) -> str:
    """SIGTERM while leading, 2 s after the API server hangs"""
    manager = bench.leader()
    bench.link.hang()
    time.sleep(2)
    return manager.end()


ROWS: tuple[Callable[[Bench], str], ...] = (
    early, restarts, killed, dead, hangs, stolen, term_before, term_hanging, term_standby, term_leading, term_dead,
    term_leading_hanging,
)  # fmt: skip


@contextmanager
def bench(program: tuple[str, ...], server: RealServer, folder: Path, options: argparse.Namespace) -> Iterator[Bench]:
    """A program on a link of its own."""
    with Link(int(server.url.rpartition(":")[2])) as link, Processes() as processes:
        try:
            yield Bench(program, server, link, folder, processes, options)
        finally:
            for process in processes.running:
                process.kill()


def _asset(name: str) -> str:
    return str(Path(os.environ["KUBEBUILDER_ASSETS"]) / name)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--early", type=float, default=60.0)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--logs", default="", help="keep the managers' logs in this folder")
    parser.add_argument("rows", nargs="*")
    options = parser.parse_args()
    programs = {"kube-controller-manager": (_asset("kube-controller-manager"),), "kcm": KCM}
    print(f"| | {' | '.join(programs)} |\n| --- |{' --- |' * len(programs)}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with restartable_server(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as server:
            for row in ROWS:
                if options.rows and row.__name__ not in options.rows:
                    continue
                cells = []
                for program in programs.values():
                    with bench(program, server, folder, options) as one:
                        try:
                            cells.append(row(one))
                        except AssertionError as error:
                            cells.append(f"failed: {error}")
                print(f"| {row.__doc__} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
