"""``kcm trace`` and ``kcm bug-report`` with the original manager on a real API server, where KUBEBUILDER_ASSETS is."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.incidents.record import _POLICY
from tests.kit.places import ROOT
from tests.kit.processes import END_S, KCM, ask, free_port, until
from tests.kit.servers import TOKEN, real_cluster

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
_THERE = bool(ASSETS) and (Path(ASSETS) / "kube-controller-manager").exists()
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not _THERE, reason="KUBEBUILDER_ASSETS has no kube-controller-manager"),
]
APPS = "/apis/apps/v1/namespaces/default"


class Original:
    def __init__(self, url: str, folder: Path, audit: Path, manager: str) -> None:
        self.url, self.folder, self.audit, self.manager = url, folder, audit, manager

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = ask(f"{self.url}{path}", token=TOKEN, method=method, body=body)
        assert answer.status < 400, answer.text
        return answer.doc

    def scale(self, replicas: int) -> None:
        body = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": replicas}}
        self.ask("PUT", f"{APPS}/deployments/web/scale", body)

    def kubeconfig(self, user: str) -> Path:
        config = yaml.safe_load((self.folder / "kubeconfig").read_text())
        config["users"][0]["user"]["as"] = user
        path = self.folder / user
        path.write_text(json.dumps(config))
        return path


@pytest.fixture(scope="module")
def original() -> Iterator[Original]:
    """A cluster without nodes, in which a Deployment was scaled down: it names the pod that went."""
    port = free_port()
    with real_cluster(Path(ASSETS), f"--secure-port={port}", policy=_POLICY) as (url, folder, audit):
        found = Original(url, folder, audit, f"https://127.0.0.1:{port}")
        until(lambda: ask(f"{url}/api/v1/namespaces/default/serviceaccounts/default", token=TOKEN).status == 200, 60)
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        template["spec"]["containers"][0]["env"] = [{"name": "P", "value": "sesame"}]  # type: ignore[index]
        spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        found.ask("POST", f"{APPS}/deployments", {"metadata": {"name": "web"}, "spec": spec})
        until(lambda: len(pods(found)) == 2, 60)
        for role, resources in (("tracer", role_of_the_docs()), ("half", ["pods", "deployments"])):
            rules = [{"apiGroups": ["*"], "resources": resources, "verbs": ["get", "list", "watch"]}]
            place = "/apis/rbac.authorization.k8s.io/v1"
            found.ask("POST", f"{place}/clusterroles", {"metadata": {"name": role}, "rules": rules})
            binding = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}}
            binding |= {"metadata": {"name": role}, "subjects": [{"kind": "User", "name": role}]}  # type: ignore[dict-item]
            found.ask("POST", f"{place}/clusterrolebindings", binding)
        yield found


def role_of_the_docs() -> list[str]:
    text = (ROOT / "docs" / "trace.md").read_text()
    (command,) = re.findall(r"kubectl create clusterrole tracer(.*?)\n\n", text, re.DOTALL)
    words = re.sub(r"[\\\s]", "", command.partition("--resource=")[2])
    return [word.partition(".")[0] for word in words.split(",")]


def pods(cluster: Original) -> list[str]:
    return [one["metadata"]["name"] for one in cluster.ask("GET", "/api/v1/namespaces/default/pods")["items"]]


def kcm(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KCM, *words], capture_output=True, text=True, timeout=END_S)


@pytest.fixture(scope="module")
def gone(original: Original) -> str:
    """A pod that the original manager deleted, and what an observer saw who may do no more than the docs say."""
    before = set(pods(original))
    original.scale(1)
    until(lambda: len(pods(original)) == 1, 60)
    (name,) = before - set(pods(original))
    return name


def test_an_observer_needs_no_more_rights_than_the_docs_say(original: Original, gone: str) -> None:
    words = ("trace", f"pod/{gone}", "--observe", f"--kubeconfig={original.kubeconfig('tracer')}")
    until(lambda: "was deleted by replicaset-controller" in kcm(*words).stdout, why=lambda: kcm(*words).stdout)
    done = kcm(*words)
    assert (done.returncode, done.stderr) == (0, "") and "Not read" not in done.stdout
    assert "was scaled by deployment-controller: from 2 to 1 (inferred: Event" in done.stdout
    assert "sesame" not in done.stdout


def test_what_may_not_be_read_is_named(original: Original, gone: str) -> None:
    done = kcm("trace", "deploy/web", "--observe", f"--kubeconfig={original.kubeconfig('half')}")
    assert done.returncode == 0 and "Not read: replicasets: " in done.stdout and "Not read: events: " in done.stdout


def test_the_audit_log_knows(original: Original, gone: str) -> None:
    done = kcm("trace", f"pod/{gone}", f"--audit-log={original.audit}", "-o", "json")
    found = json.loads(done.stdout)
    assert "was deleted by replicaset-controller (known: audit log" in found["head"][0]
    assert "Deployment default/web was scaled by admin (known: audit log)" in found["head"][2]
    assert "sesame" not in done.stdout and "could not be read" not in done.stdout


def test_the_original_has_no_record_so_that_the_cluster_is_observed(original: Original, gone: str) -> None:
    access = (
        f"--kubeconfig={original.folder}/kubeconfig",
        "--insecure-skip-tls-verify",
        f"--server={original.manager}",
    )
    done = kcm("trace", f"pod/{gone}", *access)
    assert done.returncode == 0 and "The cluster is observed instead" in done.stderr
    assert "was deleted by replicaset-controller" in done.stdout


def test_a_bug_report_of_the_original(original: Original) -> None:
    access = (
        f"--kubeconfig={original.folder}/kubeconfig",
        "--insecure-skip-tls-verify",
        f"--server={original.manager}",
    )
    found = json.loads(kcm("bug-report", *access).stdout)
    assert set(found["problems"]) <= {"/debug/causes", "/flagz", "/statusz"} and len(found["queues"]) > 20
    assert TOKEN not in json.dumps(found)


def test_followed_until_interrupted(original: Original, gone: str) -> None:
    words = [*KCM, "trace", "deploy/web", "--observe", "--follow", f"--kubeconfig={original.kubeconfig('tracer')}"]
    child, lines, sizes = subprocess.Popen(words, stdout=subprocess.PIPE, text=True), list[str](), cycle((2, 3))
    assert child.stdout is not None
    reading = Thread(target=lambda out=child.stdout: [lines.append(line) for line in out])
    reading.start()

    def told() -> bool:
        """Scale until it is seen: when the watches begin, nobody says."""
        original.scale(next(sizes))
        return any("Deployment default/web was scaled" in line and "   <" not in line for line in list(lines))

    try:
        until(told, 60, why=lambda: "".join(lines))
    finally:
        child.kill()
        child.wait()
        reading.join()
        child.stdout.close()
