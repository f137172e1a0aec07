"""Take over and go back, walked by the lines of docs/runbook.md on a real kube-apiserver with kubeadm's flags.

Needs KUBEBUILDER_ASSETS, a folder with etcd, kube-apiserver, kube-controller-manager and kubectl. What a kubelet does
with static pods is played: a manifest's process runs while the manifest is there.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.test_originals import needs
from tests.kit.places import ROOT
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import MANAGER_TOKEN, TOKEN, kubeconfig, real_server
from tests.unit.controllers.test_takeover import template

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
PAGE = (ROOT / "docs" / "runbook.md").read_text()
MANIFEST = "kube-controller-manager.yaml"
LEASE = "apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager"
GROUPS = ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/discovery.k8s.io/v1", "apis/policy/v1")
GROUPS += ("apis/rbac.authorization.k8s.io/v1", "apis/certificates.k8s.io/v1", "apis/networking.k8s.io/v1")
OF_LEADERS = {"RegisteredNode", "LeaderElection"}
"""Events that each new leader emits."""
pytestmark = pytest.mark.e2e


class Node:
    """A control plane node without a container runtime."""

    def __init__(self, url: str, folder: Path, processes: Processes) -> None:
        self.url, self.folder, self.port = url, folder, free_port()
        self.manifest = folder / "manifests" / MANIFEST
        self._processes = processes
        self._running: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def get(self, path: str) -> Any:
        return ask(f"{self.url}/{path}", token=TOKEN).doc

    def make(self, path: str, doc: dict[str, Any]) -> None:
        answer = ask(f"{self.url}/{path}", token=TOKEN, method="POST", body=doc)
        assert answer.status in (201, 409), answer

    def here(self, text: str) -> str:
        """The text with the places and ports of this test."""
        places = {
            "/etc/kubernetes/pki/front-proxy-ca.crt": f"{self.folder}/ca.crt",
            "/etc/kubernetes/pki": f"{self.folder}",
            "/etc/kubernetes/admin.conf": f"{self.folder}/kubeconfig",
            "/etc/kubernetes/controller-manager.conf": f"{self.folder}/controller-manager.conf",
            "/etc/kubernetes/manifests": f"{self.manifest.parent}",
            "/root/": f"{self.folder}/root/",
            ":10257": f":{self.port}",
        }
        for place, here in places.items():
            text = text.replace(place, here)
        return text.replace("kcm top", f"kcm top --server https://127.0.0.1:{self.port}")

    def run(self, line: str) -> str:
        """One line of the page, and then what a kubelet makes of it."""
        before = self.manifest.read_text() if self.manifest.exists() else ""
        path = f"{Path(sys.executable).parent}:{ASSETS}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "KUBECONFIG": str(self.folder / "kubeconfig")}
        words = ("bash", "-ec", self.here(line))
        done = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (line, done.stderr)
        self._sync(before)
        return done.stdout

    def _sync(self, before: str) -> None:
        now = self.manifest.read_text() if self.manifest.exists() else ""
        if now == before:
            return
        if self._running is not None:
            self._running.terminate()
            self._running.wait(30)
            self._running = None
        if now:
            container = yaml.safe_load(now)["spec"]["containers"][0]
            program = KCM if container["image"].startswith("kcm:") else (f"{ASSETS}/kube-controller-manager",)
            flags = [self.here(flag) for flag in container["args"] if not flag.startswith("--bind-address")]
            more = ["--bind-address=127.0.0.1", f"--secure-port={self.port}"]
            self._starts += 1
            log = self.folder / f"manager-{self._starts}.log"
            self._running = self._processes.start(*program, *flags, *more, log=log)

    def leads(self, holder: str) -> bool:
        """Another leader than this one works: a new Deployment gets its ReplicaSet."""
        spec = self.get(LEASE).get("spec", {})
        return bool(spec.get("holderIdentity")) and spec["holderIdentity"] != holder

    def works(self, number: int) -> None:
        name = f"marker-{number}"
        labels = {"app": name}
        doc: dict[str, Any] = {"metadata": {"name": name}}
        doc["spec"] = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template()}
        doc["spec"]["template"]["metadata"]["labels"] = labels
        self.make("apis/apps/v1/namespaces/marker/deployments", doc)
        path = f"apis/apps/v1/namespaces/marker/deployments/{name}"
        until(lambda: "observedGeneration" in self.get(path).get("status", {}), 60)
        time.sleep(5)

    def versions(self) -> dict[str, str]:
        """The version of every object but those of the test's marker and of leaders."""
        found = {}
        for group in GROUPS:
            for resource in self.get(group)["resources"]:
                if "list" in resource["verbs"] and resource["name"] != "componentstatuses":
                    for item in self.get(f"{group}/{resource['name']}")["items"]:
                        meta = item["metadata"]
                        if meta.get("namespace") != "marker" and item.get("reason") not in OF_LEADERS:
                            key = f"{resource['name']}/{meta.get('namespace', '')}/{meta['name']}"
                            found[key] = meta["resourceVersion"]
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """With workloads that the original has settled, in a cluster with one node that is alive."""
    for name in ("manifests", "root"):
        (tmp_path / name).mkdir()
    ended = threading.Event()
    with real_server(Path(ASSETS), tmp_path) as url, Processes() as processes:
        (tmp_path / "kubeconfig").write_text(kubeconfig(url))
        (tmp_path / "controller-manager.conf").write_text(kubeconfig(url, MANAGER_TOKEN))
        made = Node(url, tmp_path, processes)
        thread = threading.Thread(target=_kubelet, args=(url, ended))
        thread.start()
        try:
            for name in ("marker", "take"):
                made.make("api/v1/namespaces", {"metadata": {"name": name}})
            pod = yaml.safe_load((ROOT / "configs" / "kubernetes" / "static-pod.yaml").read_text())
            pod["spec"]["containers"][0]["image"] = "registry.k8s.io/kube-controller-manager:v1.36.2"
            (tmp_path / "original.yaml").write_text(yaml.safe_dump(pod))
            made.run(f"cp {tmp_path}/original.yaml {made.manifest}")
            until(lambda: made.leads(""), 60)
            _workloads(made)
            made.works(0)
            yield made
        finally:
            ended.set()
            thread.join()


def _workloads(node: Node) -> None:
    for plural, kind in {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}.items():
        labels = {"app": plural}
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template()}
        spec["template"]["metadata"]["labels"] = labels
        if plural == "statefulsets":
            spec["serviceName"] = "none"
        node.make(f"apis/apps/v1/namespaces/take/{plural}", {"kind": kind, "metadata": {"name": "one"}, "spec": spec})
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "deployments"}, "ports": [{"port": 80}]}}
    node.make("api/v1/namespaces/take/services", service)
    node.make("api/v1/namespaces/take/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "10"}}})
    budget = {
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "deployments"}}},
    }
    node.make("apis/policy/v1/namespaces/take/poddisruptionbudgets", budget)
    until(lambda: len(node.get("api/v1/namespaces/take/pods")["items"]) == 3, 60)
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for item in node.get("api/v1/namespaces/take/pods")["items"]:
        path = f"{node.url}/api/v1/namespaces/take/pods/{item['metadata']['name']}"
        if not item["spec"].get("nodeName"):
            binding = {"metadata": {"name": item["metadata"]["name"]}, "target": {"kind": "Node", "name": "node"}}
            assert ask(f"{path}/binding", token=TOKEN, method="POST", body=binding).status == 201
        status = {"phase": "Running", "conditions": [ready], "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
        until(lambda p=path, s=status: _put_status(p, s))  # type: ignore[misc]


def _put_status(path: str, status: dict[str, Any]) -> bool:
    doc = ask(path, token=TOKEN).doc
    return ask(f"{path}/status", token=TOKEN, method="PUT", body={**doc, "status": status}).status == 200


def _kubelet(url: str, ended: threading.Event) -> None:
    """A node that is Ready and renews its lease."""
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    doc = {"metadata": {"name": "node"}, "status": {"conditions": [condition], "allocatable": {"pods": "110"}}}
    ask(f"{url}/api/v1/nodes", token=TOKEN, method="POST", body=doc)
    leases = f"{url}/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    while not ended.is_set():
        now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        spec = {"holderIdentity": "node", "leaseDurationSeconds": 40, "renewTime": now}
        lease = {"metadata": {"name": "node", "namespace": "kube-node-lease"}, "spec": spec}
        if ask(f"{leases}/node", token=TOKEN, method="PUT", body=lease).status == 404:
            ask(leases, token=TOKEN, method="POST", body=lease)
        ended.wait(5)


def lines(section: str) -> list[str]:
    """The commands of a section of the page."""
    text = re.search(rf"^## {section}$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    assert text is not None
    return re.findall(r"^ {4,8}((?:mv|cp|kubectl|curl|kcm) .*)$", text[1], re.MULTILINE)


@needs("kube-apiserver")
@needs("kube-controller-manager")
@needs("kubectl")
def test_take_over_and_go_back_change_nothing(node: Node) -> None:
    before, holder = node.versions(), node.get(LEASE)["spec"]["holderIdentity"]
    node.run(lines("Before")[0])  # exits with 2 where kcm would write something
    move, copy, lease, *look = lines("Take over")
    node.run(move)
    node.run(copy)
    until(lambda: node.leads(holder), 60)
    holder = node.get(LEASE)["spec"]["holderIdentity"]
    assert node.run(lease).split()[0] == holder
    node.works(1)
    said = [node.run(line) for line in look]
    assert said[0] == "ok"
    assert "deployment" in said[1]
    assert node.versions() == before
    (back,) = lines("Go back")
    node.run(back)
    until(lambda: node.leads(holder), 60)
    node.works(2)
    assert node.versions() == before
