"""The manager as a process, over TLS against the sandbox's API server: leading, shutdown, errors."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.link import Link
from tests.kit.places import REFERENCE
from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until

pytestmark = pytest.mark.e2e
RETRY_S, LEASE_S = 0.5, 3
QUICK = (
    f"--leader-elect-lease-duration={LEASE_S}s",
    "--leader-elect-renew-deadline=2s",
    f"--leader-elect-retry-period={RETRY_S * 1000:.0f}ms",
    "--controllers=deployment",
)
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"


@dataclass
class Cluster:
    url: str
    kubeconfig: Path

    def lease(self) -> dict[str, Any]:
        answer = ask(self.url + LEASE, token="tok")
        return dict(answer.doc["spec"]) if answer.status == 200 else {}

    def make_deployment(self, name: str) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        body = {"metadata": {"name": name}, "spec": spec}
        assert ask(self.url + DEPLOYMENTS, token="tok", method="POST", body=body).status == 201

    def deployment(self, name: str) -> dict[str, Any]:
        return dict(ask(f"{self.url}{DEPLOYMENTS}/{name}", token="tok").doc)


@dataclass
class Manager:
    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def ask(self, path: str, token: str = "") -> tuple[int, str]:
        answer = ask(f"https://127.0.0.1:{self.port}{path}", token=token)
        return answer.status, answer.text

    def healthy(self) -> bool:
        return self.ask("/healthz")[0] == 200

    def runs(self, controller: str) -> bool:
        return controller in self.ask("/healthz?verbose")[1]

    def leads(self) -> bool:
        return self.runs("deployment-controller")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder, port = tmp_path_factory.mktemp("cluster"), free_port()
    words = ["sandbox", "--port", str(port), "--token", "tok", "--kubeconfig", str(folder / "kc"), "--nodes", "0"]
    url = f"https://127.0.0.1:{port}"
    with Processes() as processes:
        processes.start(*KCM, *words, "--no-manager", log=folder / "log")
        until(lambda: ask(f"{url}/healthz", token="tok").status == 200, why=(folder / "log").read_text)
        yield Cluster(url, folder / "kc")


def starter(cluster: Cluster, processes: Processes, folder: Path) -> Callable[..., Manager]:
    """Starts managers of a cluster, with their logs in a folder."""

    def make(*flags: str, kubeconfig: Path | None = None, **options: Any) -> Manager:
        port, log = free_port(), folder / f"log{len(processes.running)}"
        words = [f"--kubeconfig={kubeconfig or cluster.kubeconfig}", f"--secure-port={port}", *QUICK, *flags]
        return Manager(processes.start(*KCM, *words, log=log, **options), port, log)

    return make


@pytest.fixture
def start(cluster: Cluster, tmp_path: Path) -> Iterator[Callable[..., Manager]]:
    with Processes() as processes:
        yield starter(cluster, processes, tmp_path)


def test_sigterm_shuts_down_and_releases_the_lease(cluster: Cluster, start: Callable[..., Manager]) -> None:
    manager = start()
    until(manager.leads)
    spec = cluster.lease()
    assert re.fullmatch(r"[^_]+_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(spec["holderIdentity"]))
    assert spec["leaseDurationSeconds"] == 3
    for number in (signal.SIGUSR1, signal.SIGUSR2):  # a Go program ignores them
        manager.process.send_signal(number)
    assert manager.end() == 0
    assert cluster.lease()["holderIdentity"] == ""
    assert "Traceback" not in manager.log.read_text()


def test_the_gate_keeps_the_lease_on_exit(cluster: Cluster, start: Callable[..., Manager]) -> None:
    manager = start("--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=false")
    until(manager.leads)
    assert manager.end() == 0
    assert cluster.lease()["holderIdentity"] != ""


def test_after_kill_9_the_other_takes_over(cluster: Cluster, start: Callable[..., Manager]) -> None:
    first = start()
    until(first.leads)
    second = start()
    until(second.healthy)
    renewed = cluster.lease()["renewTime"]
    until(lambda: cluster.lease()["renewTime"] != renewed)  # the second one has had its chance to take it
    assert not second.leads()
    first.end(signal.SIGKILL)
    last = datetime.fromisoformat(cluster.lease()["renewTime"])
    until(second.leads)
    taken = datetime.fromisoformat(cluster.lease()["acquireTime"])
    assert taken - last >= timedelta(seconds=LEASE_S)
    assert second.end() == 0


def test_a_frozen_leader_stops_leading(start: Callable[..., Manager]) -> None:
    first = start()
    until(first.leads)
    second = start()
    until(second.healthy)
    first.process.send_signal(signal.SIGSTOP)
    until(second.leads)
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(END_S) == 1
    assert "leaderelection lost" in first.log.read_text()
    assert second.leads()


def test_sigquit_prints_tasks_and_exits_with_2(cluster: Cluster, start: Callable[..., Manager]) -> None:
    manager = start()
    until(manager.leads)
    cluster.make_deployment("seen")
    until(lambda: cluster.deployment("seen")["status"].get("observedGeneration"))  # its workers wait for more
    assert manager.end(signal.SIGQUIT) == 2
    text = manager.log.read_text()
    assert "Thread 0x" in text and "SIGQUIT: quit" in text
    assert re.search(r"task deployment-controller.*:\n(.+\n\t.+\n)*kcm_cli.*queue.*get\n", text, re.IGNORECASE), text


def test_a_standby_ends_on_sigterm(start: Callable[..., Manager]) -> None:
    first = start()
    until(first.leads)
    second = start()
    until(second.healthy)
    assert second.end() == 0
    assert first.leads()


def test_without_leader_election_there_is_no_lease(cluster: Cluster, start: Callable[..., Manager]) -> None:
    before = cluster.lease()
    manager = start("--leader-elect=false")
    until(manager.leads)
    assert not manager.runs("leaderElection")
    assert cluster.lease() == before
    assert manager.end() == 0


def test_systemd_is_notified(tmp_path: Path, start: Callable[..., Manager], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(END_S)
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


@pytest.fixture
def link(cluster: Cluster) -> Iterator[Link]:
    """What lies between a manager and its API server."""
    with Link(int(cluster.url.rpartition(":")[2])) as found:
        yield found


@pytest.fixture
def over(cluster: Cluster, link: Link, tmp_path: Path) -> Path:
    """A kubeconfig that goes over the link."""

    def moved(document: dict) -> None:
        document["clusters"][0]["cluster"]["server"] = link.url

    return with_changes(cluster, tmp_path / "over", moved)


def test_a_manager_started_before_its_api_server_waits_and_leads(
    start: Callable[..., Manager], link: Link, over: Path
) -> None:
    manager = start(kubeconfig=over)
    until(manager.healthy)
    until(lambda: manager.log.read_text().count("Error retrieving") > 3)
    link.hang()
    until(manager.healthy)
    link.join()
    until(manager.leads)
    assert manager.end() == 0


@pytest.mark.parametrize("state", ["cut", "hang"])
def test_sigterm_ends_the_wait_for_an_api_server(
    start: Callable[..., Manager], link: Link, over: Path, state: str
) -> None:
    getattr(link, state)()
    manager = start(kubeconfig=over)
    until(manager.healthy)
    started = time.monotonic()
    assert manager.end() == 0
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("state", ["cut", "hang"])
def test_sigterm_of_a_leader_does_not_wait_for_a_lost_api_server(
    start: Callable[..., Manager], link: Link, over: Path, state: str
) -> None:
    link.join()
    manager = start("--leader-elect-renew-deadline=2500ms", kubeconfig=over)
    until(manager.leads)
    getattr(link, state)()
    started = time.monotonic()
    assert manager.end() in (0, 1)  # 1: it noticed first that the lease is lost
    assert time.monotonic() - started < 10


def test_a_leader_that_loses_its_api_server_ends(start: Callable[..., Manager], link: Link, over: Path) -> None:
    link.join()
    manager = start(kubeconfig=over)
    until(manager.leads)
    link.hang()
    assert manager.process.wait(END_S) == 1
    assert "leaderelection lost" in manager.log.read_text()


def test_errors_are_json_lines_with_a_json_log(cluster: Cluster, start: Callable[..., Manager], tmp_path: Path) -> None:
    failing = start("--logging-format=json", "--leader-elect=false", kubeconfig=tmp_path / "missing")
    refused = start("--logging-format=json", "--tls-cert-file=/tmp/x.pem")
    for manager in (failing, refused):
        assert manager.process.wait(END_S) == 1
        last = [json.loads(line) for line in manager.log.read_text().splitlines()][-1]
        assert last["msg"] == "command failed" and last["err"]


USELESS = {
    "wrong CA": (other_ca, "certificate"),
    "expired token": (bad_token, "401"),
    "nothing listens": (nowhere, "cannot be reached"),
    "no such context": (lambda document: document.update({"current-context": "none"}), "none"),
    "nothing listens, authentication": (nowhere, "unable to load configmap"),
}


@pytest.fixture(scope="module")
def useless(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Manager]]:
    """Managers whose kubeconfig does not work. They wait for the API server side by side, ten seconds each."""
    folder = tmp_path_factory.mktemp("useless")

    def flags(name: str, config: Path) -> list[str]:
        return [f"--authentication-kubeconfig={config}"] if "authentication" in name else ["--leader-elect=false"]

    with Processes() as processes:
        make = starter(cluster, processes, folder)
        configs = {name: with_changes(cluster, folder / name, change) for name, (change, _) in USELESS.items()}
        yield {name: make(*flags(name, config), kubeconfig=config) for name, config in configs.items()}


@pytest.mark.parametrize("name", USELESS)
def test_an_unusable_kubeconfig_is_one_clear_line(useless: dict[str, Manager], name: str) -> None:
    assert useless[name].process.wait(60) == 1
    assert_one_error(useless[name], USELESS[name][1])


def test_an_unreadable_kubeconfig(start: Callable[..., Manager], tmp_path: Path) -> None:
    manager = start(kubeconfig=tmp_path / "missing")
    assert manager.process.wait(END_S) == 1
    assert_one_error(manager, "cannot read kubeconfig")


def test_an_occupied_port(start: Callable[..., Manager]) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        manager = start(f"--secure-port={taken.getsockname()[1]}")
        assert manager.process.wait(END_S) == 1
    assert_one_error(manager, "address already in use")


def test_a_certificate_without_key(start: Callable[..., Manager]) -> None:
    manager = start("--tls-cert-file=/tmp/x.pem")
    assert manager.process.wait(END_S) == 1
    assert_one_error(manager, "tls-private-key-file")


def assert_one_error(manager: Manager, words: str) -> None:
    lines = manager.log.read_text().splitlines()
    errors = [line for line in lines if line.startswith("Error: ") or '"command failed" err=' in line]
    assert len(errors) == 1, lines
    assert words in errors[0]
    assert not any("Traceback" in line for line in lines)


def test_the_environment_is_not_needed(start: Callable[..., Manager]) -> None:
    manager = start(env={"PATH": os.environ["PATH"]})
    until(manager.healthy)
    assert manager.end() == 0


ENDPOINTS = json.loads((REFERENCE / "endpoints.json").read_text())["endpoints"]
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
    folder = tmp_path_factory.mktemp("pair")
    asking = (
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        "--leader-elect-resource-name=other",
    )
    with Processes() as processes:

        def make(*flags: str) -> Manager:
            port = free_port()
            words = [f"--kubeconfig={cluster.kubeconfig}", f"--secure-port={port}", *QUICK[:3], *flags]
            words += ["--controllers=garbage-collector-controller"]
            return Manager(processes.start(*KCM, *words, log=folder / str(port)), port, folder / str(port))

        both = (make(*asking), make("--leader-elect-resource-name=another"))
        for manager in both:
            until(lambda manager=manager: manager.runs("garbage-collector"), why=manager.log.read_text)
        yield Pair(*(manager.port for manager in both))


def answer(port: int, path: str, token: str = "") -> tuple[int, str]:
    """Status and content type."""
    found = ask(f"https://127.0.0.1:{port}{path}", token=token)
    return found.status, found.content_type


@pytest.mark.parametrize(("facts", "path"), PATHS)
def test_endpoints_respond_as_upstream(pair: Pair, facts: dict[str, object], path: str) -> None:
    status, content_type = answer(pair.asking, path, "tok")
    assert status == facts["token_status"]
    assert content_type == facts["content_type"]
    assert answer(pair.asking, path)[0] == facts["anonymous_status"]
    assert answer(pair.asking, path, "wrong")[0] == facts["invalid_token_status"]
    assert answer(pair.alone, path)[0] == facts["anonymous_status_without_auth_kubeconfig"]
    assert answer(pair.alone, path, "tok")[0] == facts["token_status_without_auth_kubeconfig"]


def test_migrated_controllers_have_a_separate_lock(
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
    until(lambda: manager.runs("replicaset-controller") and manager.runs("deployment-controller"))
    assert not manager.runs("namespace-controller")
    moving = cluster.url + LEASE.replace("kube-controller-manager", "moving")
    holder = ask(moving, token="tok").doc["spec"]["holderIdentity"]
    assert holder == cluster.lease()["holderIdentity"]
    assert manager.end() == 0
    assert ask(moving, token="tok").doc["spec"]["holderIdentity"] == ""
    assert cluster.lease()["holderIdentity"] == ""
    assert "Traceback" not in manager.log.read_text()
