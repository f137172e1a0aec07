"""What people type, against a whole sandbox: each command ends well and says nothing on stderr."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

KUBECTL = shutil.which("kubectl") or ""
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("kubectl"),
    pytest.mark.skipif(not KUBECTL, reason="no kubectl here"),
]

APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: %(replicas)d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "%(image)s"}]}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {%s}
"""


@dataclass(frozen=True)
class Kubectl:
    """kubectl in a namespace of its own."""

    config: Path
    namespace: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "KUBECONFIG": str(self.config), "HOME": str(self.config.parent)}

    def run(self, *words: str, given: str = "", code: int = 0, says: str = "", silent: bool = True) -> str:
        """Its output. ``says``: a part of what it must write to stderr, which otherwise stays empty."""
        command = [KUBECTL, "--namespace", self.namespace, *words]
        done = subprocess.run(command, input=given, env=self.environment, capture_output=True, text=True, timeout=90)
        assert done.returncode == code, done.stderr
        assert says in done.stderr
        assert done.stderr == "" or says or not silent
        return done.stdout

    def read(self, *words: str) -> Any:
        """What ``get -o json`` says."""
        return json.loads(self.run("get", *words, "-o", "json"))

    def app(self, replicas: int = 2, image: str = "nginx:1") -> None:
        """A Deployment that is available."""
        self.run("apply", "-f", "-", given=APP % {"replicas": replicas, "image": image})
        self.run("rollout", "status", "deployment/web", "--timeout=60s")


@pytest.fixture(scope="module")
def config(start_sandbox: Callable[..., Any]) -> Path:
    sandbox = start_sandbox("--nodes", "3")
    path: Path = sandbox.kubeconfig
    return path


@pytest.fixture(scope="module")
def standing(config: Path) -> Kubectl:
    """A namespace with an app in it, to look at only."""
    found = _fresh(config, "standing")
    found.app()
    found.run("expose", "deployment", "web", "--port=80")
    return found


@pytest.fixture
def kubectl(config: Path, request: pytest.FixtureRequest) -> Iterator[Kubectl]:
    plain = request.node.name.removeprefix("test_").partition("[")[0].replace("_", "-")
    found = _fresh(config, f"{plain[:40]}-{time.time_ns() % 9999}")
    yield found
    found.run("delete", "namespace", found.namespace, "--wait=false", silent=False)


def _fresh(config: Path, name: str) -> Kubectl:
    found = Kubectl(config, name)
    found.run("create", "namespace", name)
    deadline = time.monotonic() + 20
    while not found.run("get", "serviceaccounts", "-o", "name", silent=False):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(
    ("form", "part"),
    [
        ("", "web-"),
        ("wide", "NOMINATED NODE"),
        ("yaml", "kind: Pod"),
        ("json", '"kind": "Pod"'),
        ("name", "pod/web-"),
        ("jsonpath={.items[*].spec.nodeName}", "node-"),
        ("go-template={{range .items}}{{.status.phase}} {{end}}", "Running Running"),
        ("custom-columns=NAME:.metadata.name,UID:.metadata.uid", "UID"),
    ],
    ids=["table", "wide", "yaml", "json", "name", "jsonpath", "template", "columns"],
)
def test_get(standing: Kubectl, form: str, part: str) -> None:
    assert part in standing.run("get", "pods", *(["-o", form] if form else []))


def test_get_selected_and_sorted(kubectl: Kubectl) -> None:
    kubectl.app(3)
    assert len(kubectl.read("pods", "-l", "app=web", "--field-selector=status.phase=Running")["items"]) == 3
    names = kubectl.run("get", "pods", "--sort-by=.metadata.name", "-o", "name", "--chunk-size=1").split()
    assert names == sorted(names)
    assert len(names) == 3


def test_get_of_everything(standing: Kubectl) -> None:
    kinds = {item["kind"] for item in standing.read("all")["items"]}
    assert kinds == {"Deployment", "ReplicaSet", "Pod", "Service"}


def test_get_watch(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", given=CONFIG % "")
    command = [KUBECTL, "-n", kubectl.namespace, "get", "configmap", "c", "-w", "-o", "jsonpath={.data}{'\\n'}"]
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        watch.stdout.readline()
        kubectl.run("apply", "-f", "-", given=CONFIG % "a: b")
        assert json.loads(watch.stdout.readline()) == {"a": "b"}
        watch.kill()


@pytest.mark.parametrize("kind", ["deployment", "replicaset", "pod", "node", "namespace", "serviceaccount", "service"])
def test_describe(standing: Kubectl, kind: str) -> None:
    assert "Labels:" in standing.run("describe", kind)


@pytest.mark.parametrize("what", ["pods", "deployment.spec.strategy", "hpa.spec.metrics", "crd.spec.versions"])
def test_explain(standing: Kubectl, what: str) -> None:
    text = standing.run("explain", "--recursive", what)
    assert text.startswith(("KIND:", "GROUP:"))
    assert "<string>" in text


def test_apply_three_ways(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", given=CONFIG % "mine: a, gone: b")
    kubectl.run("patch", "configmap", "c", "-p", '{"data": {"theirs": "x"}}')
    assert "configured" in kubectl.run("apply", "-f", "-", given=CONFIG % "mine: c")
    assert kubectl.read("configmap", "c")["data"] == {"mine": "c", "theirs": "x"}
    assert "unchanged" in kubectl.run("apply", "-f", "-", given=CONFIG % "mine: c")


def test_apply_server_side(kubectl: Kubectl) -> None:
    kubectl.run("apply", "--server-side", "-f", "-", given=CONFIG % "a: b")
    text = kubectl.run(
        "apply", "--server-side", "--field-manager=other", "-f", "-", given=CONFIG % "a: c", code=1, says="conflict"
    )
    assert text == ""
    forced = ("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-")
    kubectl.run(*forced, given=CONFIG % "a: c")
    assert kubectl.read("configmap", "c")["data"] == {"a": "c"}


def test_diff(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", given=CONFIG % "a: b")
    assert kubectl.run("diff", "-f", "-", given=CONFIG % "a: b") == ""
    assert "+  a: z" in kubectl.run("diff", "-f", "-", given=CONFIG % "a: z", code=1, silent=False)


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        ("strategic", '{"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}'),
        ("merge", '{"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}}'),
        ("json", '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "i:2"}]'),
    ],
    ids=lambda value: value if len(value) < 10 else "",
)
def test_patch(kubectl: Kubectl, form: str, patch: str) -> None:
    kubectl.app()
    kubectl.run("patch", "deployment", "web", f"--type={form}", "-p", patch)
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    images = {pod["spec"]["containers"][0]["image"] for pod in kubectl.read("pods")["items"] if _lives(pod)}
    assert images == {"i:2"}


def _lives(pod: Any) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def test_scale(kubectl: Kubectl) -> None:
    kubectl.app()
    kubectl.run("scale", "deployment/web", "--replicas=4", "--current-replicas=2")
    kubectl.run("wait", "--for=jsonpath={.status.readyReplicas}=4", "deployment/web", "--timeout=60s")
    kubectl.run("scale", "deployment/web", "--replicas=0")
    kubectl.run("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s")


def test_rollouts(kubectl: Kubectl) -> None:
    kubectl.app(image="nginx:1")
    kubectl.run("rollout", "pause", "deployment/web")
    kubectl.run("set", "image", "deployment/web", "c=nginx:2")
    kubectl.run("rollout", "resume", "deployment/web")
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl.run("rollout", "history", "deployment/web").split()[-4:] == ["1", "<none>", "2", "<none>"]
    kubectl.run("rollout", "undo", "deployment/web")
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    template = kubectl.read("deployment", "web")["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "nginx:1"
    kubectl.run("rollout", "restart", "deployment/web")
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl.app(1)
    kubectl.run("label", "pods", "--all", "tier=front")
    kubectl.run("label", "pods", "--all", "tier=back", "--overwrite")
    kubectl.run("annotate", "deployment", "web", "why=because")
    assert kubectl.run("get", "pods", "-l", "tier=back", "-o", "name")
    kubectl.run("label", "pods", "--all", "tier-")
    assert "tier" not in kubectl.read("pods")["items"][0]["metadata"]["labels"]


def test_wait(kubectl: Kubectl) -> None:
    kubectl.run("create", "deployment", "web", "--image=nginx", "--replicas=2")
    kubectl.run("wait", "--for=condition=Available", "deployment/web", "--timeout=60s")
    kubectl.run("wait", "--for=create", "replicaset", "-l", "app=web", "--timeout=60s")


def test_nodes_are_cordoned_tainted_and_drained(kubectl: Kubectl) -> None:
    kubectl.app(3)
    kubectl.run("cordon", "node-1")
    kubectl.run("drain", "node-1", "--ignore-daemonsets", "--timeout=60s", silent=False)
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert all(pod["spec"]["nodeName"] != "node-1" for pod in kubectl.read("pods")["items"] if _lives(pod))
    kubectl.run("taint", "node", "node-1", "a=b:NoSchedule")
    kubectl.run("taint", "node", "node-1", "a-")
    kubectl.run("uncordon", "node-1")
    assert kubectl.run("get", "node", "node-1").split("\n")[1].split()[1] == "Ready"


def test_a_budget_holds_a_drain_up(kubectl: Kubectl) -> None:
    kubectl.run("run", "lone", "--image=nginx", "--labels=app=lone")
    kubectl.run("wait", "--for=condition=Ready", "pod/lone", "--timeout=60s")
    kubectl.run("create", "poddisruptionbudget", "keep", "--selector=app=lone", "--min-available=1")
    node = kubectl.read("pod", "lone")["spec"]["nodeName"]
    drain = ("drain", node, "--force", "--ignore-daemonsets", "--pod-selector=app=lone", "--timeout=2s")
    kubectl.run(*drain, code=1, says="disruption budget")
    kubectl.run("uncordon", node)
    assert _lives(kubectl.read("pod", "lone"))


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("create", "pods"), "yes"),
        (("list", "secrets", "--as=system:serviceaccount:default:default"), "no"),
        (("get", "/metrics", "--as=nobody"), "no"),
    ],
    ids=["admin", "service account", "path"],
)
def test_auth_can_i(standing: Kubectl, words: tuple[str, ...], answer: str) -> None:
    assert standing.run("auth", "can-i", *words, code=0 if answer == "yes" else 1).strip() == answer


def test_auth_lists_and_names(standing: Kubectl) -> None:
    assert "*.*" in standing.run("auth", "can-i", "--list")
    assert "system:masters" in standing.run("auth", "whoami")


def test_top(standing: Kubectl) -> None:
    assert len(standing.run("top", "pods").splitlines()) == 3
    assert "node-1" in standing.run("top", "nodes")


def test_create_token(kubectl: Kubectl) -> None:
    token = kubectl.run("create", "token", "default", "--duration=10m").strip()
    assert token.count(".") == 2
    anyone = Kubectl(kubectl.config.with_name("none"), kubectl.namespace)
    server = kubectl.run("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    remote = ("--server", server, "--insecure-skip-tls-verify", "--token", token)
    said = anyone.run(*remote, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert said == f"system:serviceaccount:{kubectl.namespace}:default"


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete(kubectl: Kubectl, cascade: str) -> None:
    kubectl.app()
    kubectl.run("delete", "deployment", "web", f"--cascade={cascade}", "--timeout=60s")
    if cascade == "orphan":
        assert len(kubectl.read("replicasets")["items"]) == 1
        return
    kubectl.run("wait", "--for=delete", "pod", "-l", "app=web", "--timeout=60s")
    assert kubectl.read("replicasets,pods")["items"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("configmap", "x", "--from-literal=a=b"),
        ("secret", "generic", "x", "--from-literal=a=b"),
        ("serviceaccount", "x"),
        ("role", "x", "--verb=get", "--resource=pods"),
        ("rolebinding", "x", "--clusterrole=view", "--user=u"),
        ("quota", "x", "--hard=pods=4"),
        ("job", "x", "--image=i", "--", "true"),
        ("cronjob", "x", "--image=i", "--schedule=*/5 * * * *"),
        ("ingress", "x", "--rule=a.b/c*=web:80"),
        ("service", "clusterip", "x", "--tcp=80:8080"),
        ("service", "nodeport", "x", "--tcp=80"),
        ("service", "loadbalancer", "x", "--tcp=80"),
        ("service", "externalname", "x", "--external-name=a.b"),
        ("poddisruptionbudget", "x", "--selector=a=b", "--max-unavailable=1"),
    ],
    ids=lambda words: "-".join(words[:2]).removesuffix("-x"),
)
def test_create(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    assert "created" in kubectl.run("create", *words)


def test_create_for_the_whole_cluster(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl.run("create", "clusterrole", name, "--verb=get", "--resource=pods")
    kubectl.run("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=u")
    kubectl.run("create", "priorityclass", name, "--value=5")
    kubectl.run("delete", f"clusterrole/{name}", f"clusterrolebinding/{name}", f"priorityclass/{name}", silent=False)


def test_expose_and_autoscale(kubectl: Kubectl) -> None:
    kubectl.app()
    kubectl.run("expose", "deployment", "web", "--port=80")
    kubectl.run("autoscale", "deployment", "web", "--max=4", "--cpu-percent=70", silent=False)
    assert kubectl.read("hpa", "web")["spec"]["maxReplicas"] == 4
    assert kubectl.read("service", "web")["spec"]["clusterIP"].startswith("10.")


def test_raw_and_discovery(standing: Kubectl) -> None:
    assert standing.run("get", "--raw", "/healthz") == "ok"
    assert json.loads(standing.run("get", "--raw", "/apis/apps/v1"))["kind"] == "APIResourceList"
    resources = standing.run("api-resources", "--namespaced=true", "--verbs=list,create")
    assert "deployments" in resources
    assert "apps/v1" in standing.run("api-versions").split()
    assert "is running at" in standing.run("cluster-info")


def test_debug_adds_a_container(kubectl: Kubectl) -> None:
    kubectl.run("run", "p", "--image=nginx")
    kubectl.run("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    kubectl.run("debug", "p", "--image=busybox", "-c", "look", "--profile=general")
    assert kubectl.read("pod", "p")["spec"]["ephemeralContainers"][0]["name"] == "look"


def test_replace(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", given=CONFIG % "a: b")
    kubectl.run("replace", "-f", "-", given=CONFIG % "c: d")
    kubectl.run("replace", "--force", "-f", "-", given=CONFIG % "e: f")
    assert kubectl.read("configmap", "c")["data"] == {"e": "f"}


@pytest.mark.parametrize("what", ["logs", "exec", "attach", "port-forward"])
def test_what_needs_a_kubelet_says_so(kubectl: Kubectl, what: str) -> None:
    kubectl.run("run", "p", "--image=nginx")
    kubectl.run("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    rest = {"exec": ["--", "ls"], "port-forward": [":80"]}.get(what, [])
    kubectl.run(what, "p", *rest, code=1, says="kubelet")


def test_events(kubectl: Kubectl) -> None:
    kubectl.app(1)
    assert "ScalingReplicaSet" in kubectl.run("events", "--for=deployment/web")
    assert "Scheduled" in kubectl.run("get", "events", "--field-selector=involvedObject.kind=Pod")
