"""``kcm trace`` over a change of the leader and a restart: what lies before is unknown, and nobody is named for it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.trace.join import AT_START
from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until

pytestmark = pytest.mark.e2e
TOKEN = "tok"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
LEASE = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=1s")


class Cluster:
    """A sandbox, and managers that are processes of their own."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        port, self.config = free_port(), folder / "kubeconfig"
        self.url, self.folder, self.processes = f"https://127.0.0.1:{port}", folder, processes
        words = [f"--port={port}", f"--token={TOKEN}", f"--kubeconfig={self.config}", "--nodes=1", "--no-manager"]
        processes.start(*KCM, "sandbox", *words, log=folder / "sandbox.log")
        until(lambda: ask(f"{self.url}/healthz", token=TOKEN).status == 200, why=(folder / "sandbox.log").read_text)

    def manager(self, port: int) -> Any:
        access = [f"--{who}kubeconfig={self.config}" for who in ("", "authentication-", "authorization-")]
        chosen = "--controllers=deployment,replicaset,serviceaccount"
        log = self.folder / f"{port}.log"
        return self.processes.start(*KCM, *access, *LEASE, chosen, f"--secure-port={port}", log=log)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = ask(f"{self.url}{path}", token=TOKEN, method=method, body=body)
        assert answer.status < 300, answer.text
        return answer.doc

    def scale(self, replicas: int) -> None:
        body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": replicas}}
        self.ask("PUT", f"{DEPLOYMENTS}/web/scale", body)

    def pods(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.ask("GET", "/api/v1/namespaces/default/pods")["items"]}

    def words(self, target: str, port: int) -> list[str]:
        access = [f"--kubeconfig={self.config}", "--insecure-skip-tls-verify", f"--server=https://127.0.0.1:{port}"]
        return [*KCM, "trace", target, *access]

    def trace(self, target: str, port: int) -> str:
        return subprocess.run(
            self.words(target, port), capture_output=True, text=True, timeout=END_S, check=True
        ).stdout


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Processes() as processes:
        yield Cluster(tmp_path, processes)


def test_the_next_leader_names_nobody_for_what_it_found(cluster: Cluster) -> None:
    first, second = free_port(), free_port()
    leader = cluster.manager(first)
    path = "/api/v1/namespaces/default/serviceaccounts/default"
    until(lambda: ask(f"{cluster.url}{path}", token=TOKEN).status == 200)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    cluster.ask("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    until(lambda: len(cluster.pods()) == 3)
    there = cluster.pods()
    assert "create Pod" in cluster.trace(f"pod/{min(there)}", first)
    leader.kill()
    leader.wait(END_S)
    cluster.scale(2)  # while nobody leads
    cluster.manager(second)
    until(lambda: len(cluster.pods()) == 2)
    (gone,) = there - cluster.pods()
    told = cluster.trace(f"pod/{gone}", second)
    assert f"Pod default/{gone} was deleted by replicaset-controller" in told.splitlines()[0]
    first_lines = told.partition("\n\n")[0]
    assert AT_START in first_lines and "another client" not in first_lines, told
    assert "create Pod" not in told and "inferred" not in first_lines, told
    left = min(cluster.pods())
    assert "create Pod" not in cluster.trace(f"pod/{left}", second)
    cluster.scale(1)
    until(lambda: len(cluster.pods()) == 1)
    (gone,) = there - cluster.pods() - {gone}
    told = cluster.trace(f"pod/{gone}", second)
    assert "Deployment default/web was changed" in told and "a change by another client" in told, told


def test_who_follows_a_manager_is_told_of_its_restart(cluster: Cluster) -> None:
    port = free_port()
    before = cluster.manager(port)
    until(lambda: ask(f"https://127.0.0.1:{port}/healthz").status == 200)
    words, pipe = [*cluster.words("deploy/web", port), "--follow"], subprocess.PIPE
    following = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True)
    try:
        assert following.stdout is not None and following.stderr is not None
        assert following.stdout.readline()  # it has read the record
        before.kill()
        before.wait(END_S)
        assert "connection refused" in following.stderr.readline()
        cluster.manager(port)
        assert following.stderr.readline() == "Another manager answers: what caused its first syncs is unknown.\n"
    finally:
        following.kill()
        following.communicate(timeout=END_S)
