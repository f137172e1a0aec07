"""What all tests share: a sandbox as a process."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from tests.processes import KCM, Processes, ask, free_port, until

settings.register_profile("kcm", derandomize=True, deadline=None)
settings.load_profile("kcm")

START_S = 90.0
gc.disable()


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: garbage collection, 1 s for all of that, leaves it alone."""
    gc.collect()
    gc.freeze()
    gc.enable()


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
        return ask(f"{self.url}/readyz").status == 200


@pytest.fixture(scope="module")
def start_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sandbox]]:
    """Starts sandboxes as processes of their own; all end with the module."""
    with Processes() as processes:

        def start(*options: str, manager: tuple[str, ...] = ()) -> Sandbox:
            folder, port = tmp_path_factory.mktemp("sandbox"), free_port()
            sandbox = Sandbox(f"https://127.0.0.1:{port}", "admin-token", folder)
            words = [*KCM, "sandbox", "--port", str(port), "--token", sandbox.token]
            words += ["--kubeconfig", str(sandbox.kubeconfig), *options]
            if "--no-manager" not in options:
                words += ["--", "--secure-port=0", *manager]
            processes.start(*words, log=folder / "log")
            until(sandbox.healthy, START_S, why=lambda: sandbox.log)
            return sandbox

        yield start
