"""kube-controller-manager and kcm take over from each other on a real kube-apiserver: nothing is written.

Needs KUBEBUILDER_ASSETS, a folder with etcd, kube-apiserver and kube-controller-manager.
"""

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_originals import needs
from tests.kit.processes import KCM, Processes, ask, insecure, until
from tests.kit.servers import TOKEN, kubeconfig, real_server
from tests.unit.controllers.test_takeover import template
from tests.unit.planning.test_template_form import edited

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
ORIGINAL = (f"{ASSETS}/kube-controller-manager",)
CONTROLLERS = "deployment,replicaset,replicationcontroller,statefulset,daemonset,job,cronjob,serviceaccount"
CONTROLLERS += ",resourceclaim-controller"
APPS = {
    "deployments": "Deployment",
    "statefulsets": "StatefulSet",
    "daemonsets": "DaemonSet",
    "replicasets": "ReplicaSet",
}
LISTED = [f"apis/apps/v1/namespaces/take/{plural}" for plural in (*APPS, "controllerrevisions")]
LISTED += [f"api/v1/namespaces/take/{plural}" for plural in ("pods", "events")]
LISTED += ["apis/batch/v1/namespaces/take/jobs"]
pytestmark = pytest.mark.e2e


class Cluster:
    """A real API server with workloads in the namespace ``take``, and nodes that nobody runs."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._markers = 0

    def make(self, path: str, doc: dict[str, Any]) -> None:
        answer = ask(f"{self.url}/{path}", token=TOKEN, method="POST", body=doc)
        assert answer.status == 201, answer

    def items(self, path: str) -> list[dict[str, Any]]:
        return ask(f"{self.url}/{path}", token=TOKEN).doc["items"]  # type: ignore[no-any-return]

    def item(self, path: str) -> dict[str, Any]:
        return ask(f"{self.url}/{path}", token=TOKEN).doc  # type: ignore[no-any-return]

    def workload(self, plural: str, name: str, namespace: str = "take") -> None:
        labels = {"app": name}
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}}
        spec["template"] = edited(template(), ("metadata", "labels"), labels)
        if plural == "statefulsets":
            spec["serviceName"] = "none"
        doc = {"apiVersion": "apps/v1", "kind": APPS[plural], "metadata": {"name": name}, "spec": spec}
        self.make(f"apis/apps/v1/namespaces/{namespace}/{plural}", doc)

    def versions(self) -> dict[str, str]:
        """The resource version of every object in the namespace."""
        found = [(path, item["metadata"]) for path in LISTED for item in self.items(path)]
        return {f"{path}/{meta['name']}": meta["resourceVersion"] for path, meta in found}

    def run_pods(self) -> None:
        """Pods of the namespace run and are ready, as kubelets would say."""
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for item in self.items("api/v1/namespaces/take/pods"):
            path = f"{self.url}/api/v1/namespaces/take/pods/{item['metadata']['name']}/status"
            body = json.dumps({"status": {"phase": "Running", "conditions": [ready]}}).encode()
            headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/merge-patch+json"}
            request = urllib.request.Request(path, body, headers, method="PATCH")
            with urllib.request.urlopen(request, context=insecure()):
                pass

    @contextmanager
    def managed(self, command: tuple[str, ...]) -> Iterator[None]:
        """While inside, this manager runs; it has looked at everything once it has looked at what came last."""
        config = f"{self._folder}/kubeconfig"
        flags = [f"--{who}kubeconfig={config}" for who in ("", "authentication-", "authorization-")]
        flags += [f"--controllers={CONTROLLERS}", "--leader-elect=false", "--secure-port=0"]
        self._markers += 1
        marker = f"marker-{self._markers}"
        log = self._folder / f"{marker}.log"
        with Processes() as processes:
            processes.start(*command, *flags, log=log)
            for _ in range(2):  # what the first makes wait has been looked at, too, once the second is done
                for plural in APPS:
                    self.workload(plural, marker, "default")
                until(partial(self._seen, marker), why=log.read_text)
                marker += "-again"
            yield

    def _seen(self, marker: str) -> bool:
        paths = [f"{self.url}/apis/apps/v1/namespaces/default/{plural}/{marker}" for plural in APPS]
        return all(ask(path, token=TOKEN).doc.get("status", {}).get("observedGeneration") for path in paths)

    def changed_by(self, command: tuple[str, ...]) -> list[str]:
        """What this manager writes when it takes over."""
        before = self.versions()
        with self.managed(command):
            after = self.versions()
        return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Settled by kube-controller-manager."""
    folder = tmp_path_factory.mktemp("takeover")
    with real_server(Path(ASSETS), folder) as url:
        (folder / "kubeconfig").write_text(kubeconfig(url))
        made = Cluster(url, folder)
        made.make("api/v1/namespaces", {"metadata": {"name": "take"}})
        made.make("api/v1/nodes", {"metadata": {"name": "node"}})
        made.make("api/v1/namespaces/take/serviceaccounts", {"metadata": {"name": "default"}})
        for plural in APPS:
            made.workload(plural, plural)
        pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        job = {"metadata": {"name": "job"}, "spec": {"template": {"spec": pod}}}
        made.make("apis/batch/v1/namespaces/take/jobs", job)
        with made.managed(ORIGINAL):
            until(lambda: len(made.items("api/v1/namespaces/take/pods")) == len(APPS) + 1)
            made.run_pods()
        while made.changed_by(ORIGINAL):
            pass
        yield made


@needs("kube-apiserver")
@needs("kube-controller-manager")
def test_taking_over_writes_nothing(cluster: Cluster) -> None:
    assert cluster.changed_by(KCM) == []
    assert cluster.changed_by(ORIGINAL) == []


@needs("kube-apiserver")
@needs("kube-controller-manager")
def test_revisions_of_1_33_are_those_of_the_templates(cluster: Cluster) -> None:
    path = "apis/apps/v1/namespaces/take/controllerrevisions"
    for item in cluster.items(path):
        meta = {field: item["metadata"][field] for field in ("name", "labels", "ownerReferences")}
        old = edited(item["data"], ("spec", "template", "metadata", "creationTimestamp"), None)
        ask(f"{cluster.url}/{path}/{meta['name']}", token=TOKEN, method="DELETE")
        cluster.make(path, {"metadata": meta, "data": old, "revision": item["revision"]})
    assert cluster.changed_by(KCM) == []


@needs("kube-apiserver")
@needs("kube-controller-manager")
def test_updates_keep_the_bytes_of_raw_fields(cluster: Cluster) -> None:
    """A StatefulSet is rolled back whose revision has ``<``, and a claim is freed whose parameters have spaces."""
    apps = "apis/apps/v1/namespaces/default"
    sets, revisions = f"{apps}/statefulsets", f"{apps}/controllerrevisions"
    claims = "apis/resource.k8s.io/v1/namespaces/default/resourceclaims"

    def change(annotation: str) -> None:
        doc = cluster.item(f"{sets}/raw")
        doc["spec"]["template"]["metadata"]["annotations"] = {"a": annotation}
        assert ask(f"{cluster.url}/{sets}/raw", token=TOKEN, method="PUT", body=doc).status == 200

    def numbers() -> list[int]:
        of_set = [item for item in cluster.items(revisions) if item["metadata"]["name"].startswith("raw-")]
        return sorted(item["revision"] for item in of_set)

    requests = [{"name": "r", "exactly": {"deviceClassName": "d"}}]
    config = [{"opaque": {"driver": "d.example.com", "parameters": {"b": "&", "a": 1}}}]
    metadata = {"name": "raw", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    cluster.workload("statefulsets", "raw", "default")
    with cluster.managed(ORIGINAL):
        change("a < b")
        until(lambda: numbers() == [1, 2])
        change("b")
        until(lambda: numbers() == [1, 2, 3])
    cluster.make(claims, {"metadata": metadata, "spec": {"devices": {"requests": requests, "config": config}}})
    ask(f"{cluster.url}/{claims}/raw", token=TOKEN, method="DELETE")
    with cluster.managed(KCM):
        change("a < b")
        until(lambda: numbers() == [1, 3, 4])
        until(lambda: ask(f"{cluster.url}/{claims}/raw", token=TOKEN).status == 404)
