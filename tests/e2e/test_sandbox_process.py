"""``kcm sandbox`` as a process: start, shutdown, durability, errors."""

import json
import shlex
import signal
import socket
import ssl
import stat
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import END_S, KCM, Processes, ask, free_port, insecure, until

pytestmark = pytest.mark.e2e
PLAIN = ("--nodes", "0", "--no-manager", "--token", "T")
Start = Callable[..., "Sandbox"]


class Sandbox:
    """A sandbox that serves."""

    def __init__(self, processes: Processes, *flags: str) -> None:
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.child = processes.start(*KCM, "sandbox", "--port", str(port), *flags)
        until(self.ready, 90)

    def ready(self) -> bool:
        assert self.child.poll() is None
        return ask(f"{self.url}/readyz").status == 200

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return ask(self.url + path, method=method, token="T", body=body).doc

    def end(self, number: int) -> int:
        self.child.send_signal(number)
        return self.child.wait(END_S)


@pytest.fixture
def start() -> Iterator[Start]:
    with Processes() as processes:
        yield lambda *flags: Sandbox(processes, *flags)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_the_sandbox_shuts_down_with_an_open_watch(start: Start, number: int) -> None:
    sandbox = start("--nodes", "1", "--token", "T")
    request = urllib.request.Request(sandbox.url + "/api/v1/pods?watch=1", headers={"Authorization": "Bearer T"})
    with urllib.request.urlopen(request, timeout=10, context=insecure()):
        assert sandbox.end(number) == 0


def test_private_keys_are_readable_only_by_the_owner(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    start(*PLAIN, "--data-dir", str(tmp_path / "data"), "--kubeconfig", str(config))
    private = [config, *(tmp_path / "data").rglob("*")]
    assert len(private) > 8
    assert [path for path in private if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


class Refusal(BaseHTTPRequestHandler):
    """A webhook that allows nothing."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": f"asked as {self.headers['Host']}"}
        review["response"] = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_webhook_is_called_by_its_route_with_its_certificate(start: Start, tmp_path: Path) -> None:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": "w.x.test",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"namespace": "default", "name": "hook"}},
        "rules": [rule],
    }
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with HTTPServer(("127.0.0.1", 0), Refusal) as server:
        sandbox = start(*PLAIN, "--data-dir", str(tmp_path), "--route", f"hook.default={server.server_port}")
        context.load_cert_chain(tmp_path / "webhooks" / "tls.crt", tmp_path / "webhooks" / "tls.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        sandbox.ask("POST", configurations, {"metadata": {"name": "c"}, "webhooks": [webhook]})
        answer = sandbox.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
        server.shutdown()
    assert answer["message"] == 'admission webhook "w.x.test" denied the request: asked as hook.default.svc:443'


def refused(*flags: str) -> str:
    words = [*KCM, "sandbox", *flags]
    done = subprocess.run(words, capture_output=True, text=True, timeout=END_S, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_a_second_process_on_the_same_directory_is_refused(start: Start, tmp_path: Path) -> None:
    flags = (*PLAIN, "--data-dir", str(tmp_path))
    start(*flags)
    assert refused(*flags, "--port", "0") == f"Error: {tmp_path} is in use by another process"


def test_an_occupied_port_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert (
            refused("--port", str(port))
            == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use (--port 0 takes a free port)"
        )


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--prot", "1"), "port"),
        (("--port", "x"), "port"),
        (("word",), "unexpected argument: word (see kcm sandbox --help)"),
        (("--port", "0", "--", "--no-such-flag"), "no-such-flag"),
    ],
    ids=["unknown flag", "bad value", "argument", "manager flag"],
)
def test_mistakes_are_one_clear_line(flags: tuple[str, ...], line: str) -> None:
    assert line in refused(*flags)


def test_failed_writes_to_a_full_disk_are_logged(tmp_path: Path) -> None:
    command = shlex.join([*KCM, "sandbox", *PLAIN, "--port", "0", "--data-dir", str(tmp_path / "data")])
    words = ["bash", "-c", f"ulimit -f 150; exec {command}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=END_S, check=False)
    *logged, last = done.stderr.splitlines()
    assert done.returncode == 1
    assert last.startswith("Error: the cluster's first objects could not be made: ")
    assert '"Not written" err="the data directory is not writable: disk I/O error" path="/api' in logged[0]


def test_the_audit_log_tells_a_trace_who_did_it(start: Start, tmp_path: Path) -> None:
    """The last line is there when the answer is: the process is killed."""
    path = tmp_path / "audit.log"
    sandbox = start(*PLAIN, "--audit-log-path", str(path))
    sandbox.ask("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}, "data": {"k": "v"}})
    sandbox.ask("DELETE", "/api/v1/namespaces/default/configmaps/m")
    sandbox.child.kill()
    words = [*KCM, "trace", "configmap/m", "--audit-log", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=END_S, check=False)
    assert "ConfigMap default/m was deleted by admin (known: audit log)" in done.stdout, done
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_audit_log_that_cannot_be_opened(tmp_path: Path) -> None:
    words = [*KCM, "sandbox", *PLAIN, "--port", "0", "--audit-log-path", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=END_S, check=False)
    assert (done.returncode, done.stderr) == (1, f"Error: --audit-log-path: cannot write {tmp_path}: Is a directory\n")
