"""``kcm top`` beside a manager that runs: one view as JSON, and the live view with its keys."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until
from tests.kit.terminal import Terminal

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The flags of kcm top for the manager of a sandbox."""
    folder: Path = tmp_path_factory.mktemp("sandbox")
    port, manager, config = free_port(), free_port(), folder / "kubeconfig"
    options = ["--nodes=1", f"--port={port}", f"--kubeconfig={config}", "--", f"--secure-port={manager}"]
    with Processes() as processes:
        processes.start(*KCM, "sandbox", *options, log=folder / "log")
        address = f"https://127.0.0.1:{manager}"

        def ready() -> bool:
            return ask(f"{address}/healthz").status == 200

        until(ready, 90, why=lambda: (folder / "log").read_text())
        yield [f"--server={address}", f"--kubeconfig={config}", "--insecure-skip-tls-verify"]


def test_one_view_as_json(flags: list[str]) -> None:
    def rows() -> dict[str, dict[str, object]]:
        words = [*KCM, "top", *flags, "--once", "-o", "json", "--interval=100ms"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=END_S)
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        assert found["leads"] is True and found["lease"]["holder"] and not found["unhealthy"]
        return {row["queue"]: row for row in found["rows"]}

    until(lambda: "serviceaccount" in rows())
    row = rows()["serviceaccount"]
    assert row["controller"] == "serviceaccount-controller" and row["writes"] is not None


def test_the_live_view_answers_keys_and_leaves_the_terminal_as_it_was(flags: list[str]) -> None:
    with Terminal(24, 100) as terminal, Processes() as processes:
        child = processes.start(*KCM, "top", *flags, "--interval=200ms", **terminal.options(TERM="xterm-256color"))

        def shows(text: str) -> None:
            until(lambda: text in terminal.text, why=lambda: terminal.text)

        shows("keys/s")
        terminal.press("h")
        shows("how long the oldest key has been in work")
        terminal.press("hp")
        shows("PAUSED")
        terminal.press("/service\r")
        shows("filter service")
        terminal.press("q")
        assert child.wait(END_S) == 0
        until(terminal.is_as_it_was)


def test_ctrl_c_ends_it(flags: list[str]) -> None:
    with Terminal(24, 100) as terminal, Processes() as processes:
        child = processes.start(*KCM, "top", *flags, **terminal.options(TERM="xterm-256color"))
        until(lambda: "keys/s" in terminal.text, why=lambda: terminal.text)
        child.send_signal(signal.SIGINT)
        assert child.wait(END_S) == 0
        until(terminal.is_as_it_was)


def test_ctrl_z_gives_the_terminal_back_until_the_foreground_returns(flags: list[str]) -> None:
    with Terminal(24, 100) as terminal, Processes() as processes:
        child = processes.start(*KCM, "top", *flags, **terminal.options(TERM="xterm-256color"))
        until(lambda: "keys/s" in terminal.text and not terminal.is_as_it_was(), why=lambda: terminal.text)
        child.send_signal(signal.SIGTSTP)
        until(terminal.is_as_it_was)
        child.send_signal(signal.SIGCONT)
        until(lambda: not terminal.is_as_it_was())
        terminal.press("q")
        assert child.wait(END_S) == 0
        until(terminal.is_as_it_was)
