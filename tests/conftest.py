"""What all tests share: a sandbox as a process."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

from kcm_cli.component.virtual import VirtualLoop
from tests.kit.processes import KCM, Processes, ask, free_port, until

settings.register_profile("kcm", derandomize=True, deadline=None)
settings.load_profile("kcm")

START_S = 90.0
LONG_S, SHOWN, SHOWN_DEPTH = 60.0, 12, 3
TESTS_A_LOOK = 100
"""A look for garbage at all objects takes 0.15 s, and Python would make one every 30 tests: a seventh of their time."""
gc.disable()
gc.set_threshold(700, 10, 1_000_000)
_ended = count(1)


def pytest_collection_finish() -> None:
    """What was imported and collected lives to the end: garbage collection, 1 s for all of that, leaves it alone."""
    _leave_alone()
    gc.enable()


def pytest_runtest_logfinish() -> None:
    """So does what tests have left and is no garbage: schemas, caches, modules that they imported."""
    if next(_ended) % TESTS_A_LOOK == 0:
        _leave_alone()


def _leave_alone() -> None:
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The folders whose tests took longest, setup and teardown included; a short run has none."""
    took: Counter[str] = Counter()
    for report in (one for several in terminalreporter.stats.values() for one in several):
        if isinstance(report, pytest.TestReport):
            took["/".join(report.nodeid.split("::")[0].split("/")[1:-1][:SHOWN_DEPTH])] += report.duration
    if (whole := sum(took.values())) >= LONG_S:
        shares = [f"{folder} {seconds:.0f} s" for folder, seconds in took.most_common(SHOWN)]
        terminalreporter.write_line(f"{whole:.0f} s in tests: {', '.join(shares)}")


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    """The loop of tests and fixtures that are coroutines: virtual time, or asyncio's with the mark ``real_time``."""
    real = request.node.get_closest_marker("real_time") is not None
    return "asyncio", {} if real else {"loop_factory": VirtualLoop}


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
