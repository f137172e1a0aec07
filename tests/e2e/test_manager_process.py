"""The manager as a process, over TLS against the sandbox's API server: leading, ending, and what is wrong."""

import json
import os
import re
import signal
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
import yaml

from tests.places import REFERENCE

pytestmark = pytest.mark.e2e
KCM = [sys.executable, "-m", "kcm_cli.cli.main"]
QUICK = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
    "--controllers=deployment",
)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def insecure() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def get(url: str, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, context=insecure(), timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def until(check: Callable[[], object], seconds: float = 60.0) -> float:
    """Wait for the check to hold; how long that took."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        try:
            if check():
                return time.monotonic() - start
        except (OSError, KeyError):
            pass
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s")


@dataclass
class Cluster:
    url: str
    kubeconfig: Path
    process: "subprocess.Popen[bytes]"

    def lease(self) -> dict[str, object]:
        status, body = get(self.url + LEASE, "tok")
        return dict(json.loads(body)["spec"]) if status == 200 else {}


@dataclass
class Manager:
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def healthy(self) -> bool:
        return get(f"https://127.0.0.1:{self.port}/healthz")[0] == 200

    def leads(self) -> bool:
        return "deployment-controller" in get(f"https://127.0.0.1:{self.port}/healthz?verbose")[1]

    def end(self, number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
        self.process.send_signal(number)
        return self.process.wait(seconds)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    words = ["sandbox", "--port", str(port), "--token", "tok", "--kubeconfig", str(folder / "kc"), "--nodes", "0"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*KCM, *words, "--no-manager"], stdout=log, stderr=log)
    url = f"https://127.0.0.1:{port}"
    try:
        until(lambda: get(f"{url}/healthz", "tok")[0] == 200, 30)
        yield Cluster(url, folder / "kc", process)
    finally:
        process.terminate()
        process.wait(15)


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Manager]]:
    started: list[Manager] = []

    def make(*flags: str, kubeconfig: Path | None = None) -> Manager:
        port = free_port()
        log = tmp_path / f"log{len(started)}"
        words = [f"--kubeconfig={kubeconfig or cluster.kubeconfig}", f"--secure-port={port}", *QUICK, *flags]
        with log.open("wb") as file:
            manager = Manager(subprocess.Popen([*KCM, *words], stdout=file, stderr=file), port, log)
        started.append(manager)
        return manager

    yield make
    for manager in started:
        if manager.process.poll() is None:
            manager.process.send_signal(signal.SIGCONT)
            manager.process.kill()
            manager.process.wait()


def test_sigterm_ends_in_order_and_gives_the_lease_back(cluster: Cluster, start: Callable[..., Manager]) -> None:
    manager = start()
    until(manager.leads)
    spec = cluster.lease()
    assert re.fullmatch(r"[^_]+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(spec["holderIdentity"]))
    assert spec["leaseDurationSeconds"] == 3
    assert manager.end() == 0
    assert cluster.lease()["holderIdentity"] == ""
    assert "Traceback" not in manager.log.read_text()


def test_the_gate_keeps_the_lease_on_exit(cluster: Cluster, start: Callable[..., Manager]) -> None:
    manager = start("--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=false")
    until(manager.leads)
    assert manager.end() == 0
    assert cluster.lease()["holderIdentity"] != ""


def test_after_kill_9_the_other_takes_over(start: Callable[..., Manager]) -> None:
    first = start()
    until(first.leads)
    second = start()
    until(second.healthy)
    time.sleep(1.0)
    assert not second.leads()
    first.end(signal.SIGKILL)
    assert until(second.leads) <= 3.0 + 0.5 * 2.2 + 1.5
    assert second.end() == 0


def test_one_that_was_frozen_does_not_go_on_leading(start: Callable[..., Manager]) -> None:
    first = start()
    until(first.leads)
    second = start()
    until(second.healthy)
    first.process.send_signal(signal.SIGSTOP)
    until(second.leads)
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(5) == 1
    assert "leaderelection lost" in first.log.read_text()
    assert second.leads()


def test_a_standby_ends_on_sigterm(start: Callable[..., Manager]) -> None:
    first = start()
    until(first.leads)
    second = start()
    until(second.healthy)
    assert second.end() == 0
    assert first.leads()


def test_without_election_there_is_no_lease(cluster: Cluster, start: Callable[..., Manager]) -> None:
    before = cluster.lease()
    manager = start("--leader-elect=false")
    until(manager.leads)
    assert "leaderElection" not in get(f"https://127.0.0.1:{manager.port}/healthz?verbose")[1]
    assert cluster.lease() == before
    assert manager.end() == 0


def test_systemd_is_told(tmp_path: Path, start: Callable[..., Manager], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(10)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        manager = start()
        assert listener.recv(100) == b"READY=1"
        assert manager.healthy()
        assert manager.end() == 0
        assert listener.recv(100) == b"STOPPING=1"


def with_changes(cluster: Cluster, path: Path, change: Callable[[dict], None]) -> Path:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    change(document)
    path.write_text(yaml.safe_dump(document))
    return path


def other_ca(document: dict) -> None:
    import base64
    import datetime

    from kcm_cli.manager.server.self_signed import make_pair

    pair = make_pair("127.0.0.1", datetime.datetime.now(datetime.UTC))
    document["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(pair.cert).decode()


def bad_token(document: dict) -> None:
    document["users"][0]["user"] = {"token": "expired"}


def nowhere(document: dict) -> None:
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_ca, "certificate"),
        (bad_token, "401"),
        (lambda document: document.update({"current-context": "none"}), "none"),
    ],
    ids=["wrong CA", "expired token", "no such context"],
)
def test_a_kubeconfig_that_does_not_work_is_one_clear_line(
    cluster: Cluster, start: Callable[..., Manager], tmp_path: Path, change: Callable[[dict], None], words: str
) -> None:
    manager = start(kubeconfig=with_changes(cluster, tmp_path / "kc", change))
    assert manager.process.wait(20) == 1
    assert_one_error(manager, words)


def test_no_api_server_is_one_clear_line_within_ten_seconds(
    cluster: Cluster, start: Callable[..., Manager], tmp_path: Path
) -> None:
    manager = start(kubeconfig=with_changes(cluster, tmp_path / "kc", nowhere))
    begin = time.monotonic()
    assert manager.process.wait(20) == 1
    assert 7 < time.monotonic() - begin < 40
    assert_one_error(manager, "cannot be reached")


def test_an_unreadable_kubeconfig(start: Callable[..., Manager], tmp_path: Path) -> None:
    manager = start(kubeconfig=tmp_path / "missing")
    assert manager.process.wait(10) == 1
    assert_one_error(manager, "cannot read kubeconfig")


def test_an_occupied_port(start: Callable[..., Manager]) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        manager = start(f"--secure-port={taken.getsockname()[1]}")
        assert manager.process.wait(10) == 1
    assert_one_error(manager, "address already in use")


def test_a_certificate_without_key(start: Callable[..., Manager]) -> None:
    manager = start("--tls-cert-file=/tmp/x.pem")
    assert manager.process.wait(10) == 1
    assert_one_error(manager, "tls-private-key-file")


def assert_one_error(manager: Manager, words: str) -> None:
    lines = manager.log.read_text().splitlines()
    errors = [line for line in lines if line.startswith("Error: ")]
    assert len(errors) == 1, lines
    assert words in errors[0]
    assert not any("Traceback" in line for line in lines)


def test_the_environment_is_not_needed(cluster: Cluster, tmp_path: Path) -> None:
    port = free_port()
    words = [f"--kubeconfig={cluster.kubeconfig}", f"--secure-port={port}", *QUICK]
    environment = {"PATH": os.environ["PATH"]}
    process = subprocess.Popen([*KCM, *words], env=environment, stderr=subprocess.DEVNULL)
    try:
        until(lambda: get(f"https://127.0.0.1:{port}/healthz")[0] == 200)
    finally:
        process.terminate()
        assert process.wait(15) == 0


ENDPOINTS = json.loads((REFERENCE / "endpoints.json").read_text())["endpoints"] if REFERENCE.exists() else []
CONCRETE = {
    "NAME": ("leaderElection",),
    "<check>": ("leaderElection",),
    "{allocs,block,goroutine,heap,mutex,threadcreate}": (
        "allocs",
        "block",
        "goroutine",
        "heap",
        "mutex",
        "threadcreate",
    ),
    "seconds=N": ("seconds=1",),
    "<unknown>": ("unknown",),
    "<other controller>": ("deployment-controller",),
}


def concrete(path: str) -> Iterator[str]:
    """The paths that a pattern of the reference stands for."""
    for pattern, values in CONCRETE.items():
        if pattern in path:
            for value in values:
                yield from concrete(path.replace(pattern, value))
            return
    yield path


PATHS = [pytest.param(one, path, id=path) for one in ENDPOINTS for path in concrete(one["path"])]


@dataclass
class Pair:
    """A manager that may ask the API server about its users, and one that may not."""

    asking: int
    alone: int


@pytest.fixture(scope="module")
def pair(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder, ports, running = tmp_path_factory.mktemp("pair"), (free_port(), free_port()), []
    asking = (
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        "--leader-elect-resource-name=other",
    )
    for port, more in zip(ports, (asking, ("--leader-elect-resource-name=another",)), strict=True):
        words = [f"--kubeconfig={cluster.kubeconfig}", f"--secure-port={port}", *QUICK[:3], *more]
        chosen = "--controllers=garbage-collector-controller"
        with (folder / str(port)).open("wb") as log:
            running.append(subprocess.Popen([*KCM, *words, chosen], stdout=log, stderr=log))
    try:
        for port in ports:
            page = f"https://127.0.0.1:{port}/healthz?verbose"
            until(lambda page=page: "garbage-collector" in get(page)[1])
        yield Pair(*ports)
    finally:
        for process in running:
            process.terminate()
            process.wait(15)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


def ask(port: int, path: str, token: str = "") -> tuple[int, str]:
    """Status and content type; redirects are not followed."""
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=insecure()), NoRedirect)
    headers = {"authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, answer.headers.get("content-type", "")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers.get("content-type", "")


@pytest.mark.parametrize(("facts", "path"), PATHS)
def test_endpoints_answer_as_the_original(pair: Pair, facts: dict[str, object], path: str) -> None:
    status, content_type = ask(pair.asking, path, "tok")
    assert status == facts["token_status"]
    assert content_type == facts["content_type"]
    assert ask(pair.asking, path)[0] == facts["anonymous_status"]
    assert ask(pair.asking, path, "wrong")[0] == facts["invalid_token_status"]
    assert ask(pair.alone, path)[0] == facts["anonymous_status_without_auth_kubeconfig"]
    assert ask(pair.alone, path, "tok")[0] == facts["token_status_without_auth_kubeconfig"]


def test_migrated_controllers_run_under_a_lock_of_their_own(
    cluster: Cluster, start: Callable[..., Manager], tmp_path: Path
) -> None:
    document = {
        "apiVersion": "controllermanager.config.k8s.io/v1",
        "kind": "LeaderMigrationConfiguration",
        "leaderName": "moving",
        "resourceLock": "leases",
        "controllerLeaders": [
            {"name": "deployment-controller", "component": "*"},
            {"name": "namespace-controller", "component": "cloud-controller-manager"},
        ],
    }
    (tmp_path / "migration.yaml").write_text(yaml.safe_dump(document))
    manager = start(
        "--enable-leader-migration",
        f"--leader-migration-config={tmp_path / 'migration.yaml'}",
        "--controllers=deployment-controller,replicaset-controller,namespace-controller",
    )
    page = f"https://127.0.0.1:{manager.port}/healthz?verbose"
    until(lambda: "replicaset-controller" in get(page)[1] and "deployment-controller" in get(page)[1])
    assert "namespace-controller" not in get(page)[1]
    moving = cluster.url + LEASE.replace("kube-controller-manager", "moving")
    holder = json.loads(get(moving, "tok")[1])["spec"]["holderIdentity"]
    assert holder == cluster.lease()["holderIdentity"]
    assert manager.end() == 0
    assert json.loads(get(moving, "tok")[1])["spec"]["holderIdentity"] == ""
    assert cluster.lease()["holderIdentity"] == ""
    assert "Traceback" not in manager.log.read_text()
