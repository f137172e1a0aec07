"""What all tests share: where recorded facts lie, and a sandbox as a process."""

import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from tests.places import ROOT, SHARED

settings.register_profile("kcm", derandomize=True, deadline=None)
settings.load_profile("kcm")

START_S = 30.0


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded behaviour; it is beside the project in development and CI, users do not have it."""
    if not SHARED.is_dir():
        pytest.skip(f"no recorded behaviour at {SHARED}")
    return SHARED


@dataclass(frozen=True)
class Sandbox:
    """A running ``kcm sandbox``."""

    url: str
    token: str
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def healthy(self) -> bool:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


@pytest.fixture(scope="session")
def start_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sandbox]]:
    """Starts sandboxes as processes of their own; all end with the session."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*options: str, manager: tuple[str, ...] = ()) -> Sandbox:
        folder = tmp_path_factory.mktemp("sandbox")
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            port = sock.getsockname()[1]
        sandbox = Sandbox(f"https://127.0.0.1:{port}", "admin-token", folder)
        command = [sys.executable, "-m", "kcm_cli.cli.main", "sandbox", "--port", str(port), "--token", sandbox.token]
        command += ["--kubeconfig", str(sandbox.kubeconfig), *options]
        if "--no-manager" not in options:
            command += ["--", "--secure-port=0", *manager]
        with (folder / "log").open("wb") as log:
            running.append(subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT))
        deadline = time.monotonic() + START_S
        while not sandbox.healthy():
            assert time.monotonic() < deadline, sandbox.log
            time.sleep(0.05)
        return sandbox

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait(20)
