"""What a test suite costs on a control plane: seconds, CPU, memory, and whether it passed.

``KUBEBUILDER_ASSETS=/folder python -m tests.bench.backends BACKEND -- COMMAND...`` runs a suite and prints a JSON line.
BACKEND is ``real`` (etcd and kube-apiserver of that folder), ``kcm`` (a sandbox with three nodes and the controllers)
or ``kcm-bare`` (a sandbox without nodes and controllers). The suite gets the cluster by KUBECONFIG. A suite that starts
its control plane itself, as envtest does, gets the programs by KUBEBUILDER_ASSETS, with ``--assets``.

memory_mib: the largest sum of the resident memory of the control plane's processes, which with ``--assets`` are all
processes below the suite's first one. cpu_s: of these and the suite.
"""

import argparse
import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import real_server

SANDBOXES = {"kcm": (), "kcm-bare": ("--nodes=0", "--no-manager")}
ASSETS = {"kcm": ("--nodes=3",), "kcm-bare": ()}
_STEP_S = 0.1
_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: kubernetes, cluster: {{server: "{url}", certificate-authority-data: {authority}}}}}]
users: [{{name: kubernetes-admin, user: {{client-certificate-data: {certificate}, client-key-data: {key}}}}}]
contexts: [{{name: kubernetes-admin@kubernetes, context: {{cluster: kubernetes, user: kubernetes-admin}}}}]
current-context: kubernetes-admin@kubernetes
"""


class Costs:
    """The processes below this one, sampled: CPU that is not lost with their end, and the largest sum of memory."""

    def __init__(self) -> None:
        self._cpu: dict[int, float] = {}
        self.memory = 0

    def sample(self, leaving_out: Iterable[int]) -> None:
        """Look once. ``leaving_out``: processes whose memory does not count."""
        memory = 0
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                self._cpu[process.pid] = sum(process.cpu_times()[:2])
                memory += 0 if process.pid in leaving_out else process.memory_info().rss
        self.memory = max(self.memory, memory)

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu.values())


@contextlib.contextmanager
def cluster(backend: str, folder: Path) -> Iterator[None]:
    """KUBECONFIG of a running control plane."""
    path = folder / "kubeconfig"
    if backend == "real":
        with real_server(Path(os.environ["KUBEBUILDER_ASSETS"]), folder) as url:
            files = (folder / "serving" / "apiserver.crt", folder / "admin.crt", folder / "admin.key")
            authority, certificate, key = (base64.b64encode(file.read_bytes()).decode() for file in files)
            path.write_text(_KUBECONFIG.format(url=url, authority=authority, certificate=certificate, key=key))
            yield
        return
    port = free_port()
    words = ["sandbox", f"--port={port}", "--no-view", f"--kubeconfig={path}", *SANDBOXES[backend]]
    with Processes() as processes:
        processes.start(*KCM, *words, log=folder / "sandbox.log")
        until(lambda: ask(f"https://127.0.0.1:{port}/readyz").status == 200)
        yield


@contextlib.contextmanager
def assets(backend: str, folder: Path) -> Iterator[None]:
    """KUBEBUILDER_ASSETS of the backend."""
    if backend != "real":
        words = [*KCM, "sandbox", "assets", f"--dir={folder / 'assets'}", *ASSETS[backend]]
        os.environ["KUBEBUILDER_ASSETS"] = subprocess.run(
            words, capture_output=True, text=True, check=True
        ).stdout.strip()
    yield


def measured(
    command: list[str], start: contextlib.AbstractContextManager[None], log: Path, of_suite: bool
) -> dict[str, object]:
    """Run a suite on a control plane. of_suite: whether the suite starts that itself."""
    began, costs = time.monotonic(), Costs()
    with start:
        ready = time.monotonic()
        servers = {process.pid for process in psutil.Process().children(recursive=True)}
        with log.open("wb") as output:
            suite = psutil.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            while suite.poll() is None:
                family = () if of_suite else [process.pid for process in _below(suite)]
                costs.sample({suite.pid, *family} - servers)
                time.sleep(_STEP_S)
        ended = time.monotonic()
    return {
        "start_s": round(ready - began, 1),
        "suite_s": round(ended - ready, 1),
        "cpu_s": round(costs.cpu_s, 1),
        "memory_mib": costs.memory >> 20,
        "exit": suite.returncode,
        "log": str(log),
    }


def _below(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        children: list[psutil.Process] = process.children(recursive=True)
        return children
    return []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=("real", *SANDBOXES))
    parser.add_argument("--assets", action="store_true", help="the suite starts its control plane itself")
    parser.add_argument("--log", default=os.devnull, help="file for the suite's output")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["KUBECONFIG"] = str(folder / "kubeconfig")
        start = (assets if given.assets else cluster)(given.backend, folder)
        found = measured(given.command, start, Path(given.log), given.assets)
    sys.stdout.write(json.dumps({"backend": given.backend, **found}) + "\n")


if __name__ == "__main__":
    main()
