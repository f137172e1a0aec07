"""``kcm sandbox`` as a process: starting, ending, keeping what it acknowledged, and what is wrong."""

import json
import random
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e
KCM = [sys.executable, "-m", "kcm_cli.cli.main", "sandbox"]
PLAIN = ("--nodes", "0", "--no-manager", "--token", "T")
CONTEXT = ssl.create_default_context()
CONTEXT.check_hostname, CONTEXT.verify_mode = False, ssl.CERT_NONE


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Process:
    """A running sandbox."""

    def __init__(self, *flags: str) -> None:
        self.url = f"https://127.0.0.1:{free_port()}"
        port = self.url.rpartition(":")[2]
        self.child = subprocess.Popen([*KCM, "--port", port, *flags], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not self.ready():
            assert self.child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def ready(self) -> bool:
        try:
            return bool(self.ask("GET", "/readyz") == "ok")
        except OSError:
            return False

    def ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": "Bearer T", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10, context=CONTEXT) as answer:
            text = answer.read().decode()
        return text if path == "/readyz" else json.loads(text)

    def end(self, number: int) -> int:
        self.child.send_signal(number)
        return self.child.wait(10)


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        if process.child.poll() is None:
            process.child.kill()
        process.child.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_ends_within_two_seconds_with_a_watch_open(processes: list[Process], number: int) -> None:
    process = Process("--nodes", "1", "--token", "T")
    processes.append(process)
    request = urllib.request.Request(process.url + "/api/v1/pods?watch=1", headers={"Authorization": "Bearer T"})
    with urllib.request.urlopen(request, timeout=10, context=CONTEXT):
        start = time.monotonic()
        assert process.end(number) == 0
        assert time.monotonic() - start < 2


def test_a_kill_loses_no_acknowledged_write(processes: list[Process], tmp_path: Path) -> None:
    rng, acknowledged = random.Random(7), 0
    for _ in range(8):
        process = Process(*PLAIN, "--data-dir", str(tmp_path / "data"))
        processes.append(process)
        listed = process.ask("GET", "/api/v1/namespaces/default/configmaps")
        kept = {int(item["metadata"]["name"][1:]) for item in listed["items"]}
        assert kept >= set(range(acknowledged))
        versions = [int(item["metadata"]["resourceVersion"]) for item in listed["items"]]
        assert int(listed["metadata"]["resourceVersion"]) >= max(versions, default=0)
        acknowledged = max(kept, default=-1) + 1
        threading.Timer(rng.uniform(0.05, 0.3), process.child.kill).start()
        try:
            while True:
                body = {"metadata": {"name": f"c{acknowledged}"}}
                process.ask("POST", "/api/v1/namespaces/default/configmaps", body)
                acknowledged += 1
        except (OSError, urllib.error.URLError):
            process.child.wait(10)
    assert acknowledged > 20


def test_keys_are_their_owners_alone(processes: list[Process], tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    processes.append(Process(*PLAIN, "--data-dir", str(tmp_path / "data"), "--kubeconfig", str(config)))
    private = [config, *(tmp_path / "data").rglob("*")]
    assert len(private) > 8
    assert [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def refused(*flags: str) -> str:
    done = subprocess.run([*KCM, *flags], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_second_process_on_the_same_directory_is_refused(processes: list[Process], tmp_path: Path) -> None:
    flags = (*PLAIN, "--data-dir", str(tmp_path))
    processes.append(Process(*flags))
    assert refused(*flags, "--port", "0") == f"Error: {tmp_path} is in use by another process"


def test_an_occupied_port_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use"


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--prot", "1"), "port"),
        (("--port", "x"), "port"),
        (("word",), 'unexpected argument "word"'),
        (("--port", "0", "--", "--no-such-flag"), "no-such-flag"),
    ],
    ids=["unknown flag", "bad value", "argument", "manager flag"],
)
def test_mistakes_are_one_clear_line(flags: tuple[str, ...], line: str) -> None:
    assert line in refused(*flags)
