"""``kcm sandbox`` on a terminal: the status view, log lines above it, and a clean terminal afterwards."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until
from tests.kit.terminal import Terminal

pytestmark = pytest.mark.e2e
FRAME = "╭│╰"
LOG_LINE = re.compile(r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ \w+\.py:\d+\] [^╭│╰]+")
DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal() as made:
        yield made


@pytest.fixture
def start(terminal: Terminal) -> Iterator[Start]:
    with Processes() as processes:

        def run(
            *words: str, term: str = "xterm-256color", port: int = 0, **environment: str
        ) -> "subprocess.Popen[bytes]":
            flags = ("--port", str(port), "--token", "T", *words)
            return processes.start(*KCM, "sandbox", *flags, **terminal.options(TERM=term, **environment))

        yield run


def shows(terminal: Terminal, *words: str) -> None:
    until(lambda: all(word in terminal.text for word in words), why=lambda: f"{words} in:\n{terminal.text}")


def is_clean(terminal: Terminal) -> None:
    """Nothing of the view is left."""

    def left() -> list[str]:
        return [line for line in terminal.lines if line[:1] in (*FRAME, " ")]

    until(lambda: terminal.is_as_it_was() and not left(), why=lambda: terminal.text)


def test_the_view_is_below_the_log_and_removed_by_ctrl_c(start: Start, terminal: Terminal) -> None:
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    process = start("--", "--secure-port=0", "-v=4", port=port)
    shows(terminal, url, "KUBECONFIG", "3 ready", "controllers run", "RegisteredNode")
    path = "/apis/apps/v1/namespaces/default/deployments"
    until(lambda: ask(url + path, token="T", method="POST", body=DEPLOYMENT).status in (201, 409))
    shows(terminal, "2 Running", "SuccessfulCreate", "replicaset")
    terminal.press("typed, and seen by nobody\n")
    terminal.press("\x03")
    assert process.wait(END_S) == 0
    is_clean(terminal)
    first, second, *logged = terminal.lines
    assert first == f"kcm sandbox serves on {url}"
    assert second.startswith("export KUBECONFIG=/")
    assert len(logged) > 100
    assert "typed" not in terminal.text
    assert [line for line in logged if not LOG_LINE.fullmatch(line)] == []


def test_the_view_in_a_locale_without_unicode(start: Start, terminal: Terminal) -> None:
    process = start("--no-manager", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="")
    shows(terminal, "3 ready", "3?", "node/node-?")  # three similar Events: a multiplication sign, an ellipsis
    terminal.press("\x03")
    assert process.wait(END_S) == 0


def test_ctrl_z_restores_the_terminal_and_fg_the_view(start: Start, terminal: Terminal) -> None:
    process = start("--no-manager")
    shows(terminal, "3 ready")
    terminal.press("\x1a")
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    is_clean(terminal)
    process.send_signal(signal.SIGCONT)
    shows(terminal, "3 ready")
    process.terminate()
    assert process.wait(END_S) == 0
    is_clean(terminal)


@pytest.mark.parametrize(("flags", "term"), [(("--no-view",), "xterm"), ((), "dumb")], ids=["--no-view", "TERM=dumb"])
def test_plain_lines(start: Start, terminal: Terminal, flags: tuple[str, ...], term: str) -> None:
    process = start("--nodes", "0", "--no-manager", *flags, term=term)
    shows(terminal, "kcm sandbox serves on", "export KUBECONFIG=")
    process.terminate()
    assert process.wait(END_S) == 0
    assert b"\x1b" not in terminal.raw
    assert len(terminal.lines) == 2


def test_mistakes_are_reported_on_a_terminal(start: Start, terminal: Terminal) -> None:
    process = start("--nodes", "0", "--", "--secure-port=0", "--kubeconfig=/no/such/file")
    assert process.wait(END_S) == 1
    is_clean(terminal)
    assert LOG_LINE.fullmatch(terminal.lines[-1]), terminal.text
    assert '"command failed" err="cannot read kubeconfig /no/such/file: ' in terminal.lines[-1]
