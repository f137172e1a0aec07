"""kubectl against a whole sandbox: each command succeeds and writes nothing to stderr.

Any kubectl from 1.20 on will do; what an old one has not is skipped and says so.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.kit.processes import Processes, until

KUBECTL = shutil.which("kubectl") or ""
pytestmark = [
    pytest.mark.e2e,
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
BUDGET = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 1, selector: {matchLabels: {app: lone}}}
"""
EDITOR = """#!/bin/sh
exec sed -i -e '/^spec:/,/^status:/s/replicas: 2/replicas: 3/' -e s/nginx:1/nginx:2/ "$1"
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {%s}
"""


CLUSTER_SCOPED = "deleting cluster-scoped resources, not scoped to the provided namespace"
OLD_ENDPOINTS = "v1 Endpoints is deprecated in v1.33"
"""What any v1.36 server tells those who still ask for Endpoints."""
OLD_FLAG = "--cpu-percent has been deprecated"


@cache
def minor() -> int:
    """Which kubectl 1.x this is."""
    said = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, check=True, timeout=60)
    return int(re.sub(r"\D.*", "", json.loads(said.stdout)["clientVersion"]["minor"]))


def needs(least: int, what: str) -> None:
    """Skip the test where kubectl is older than that."""
    if minor() < least:
        pytest.skip(f"{what} came with kubectl 1.{least}, this is 1.{minor()}")


@dataclass(frozen=True)
class Kubectl:
    """kubectl in a new namespace."""

    config: Path
    namespace: str

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "KUBECONFIG": str(self.config), "HOME": str(self.config.parent)}

    def run(
        self, *words: str, given: str = "", code: int = 0, says: str = "", may_say: str = "", editor: str = ""
    ) -> str:
        """Its output. ``says``: a part of what it must write to stderr; without it there is no line but ``may_say``."""
        command = [KUBECTL, "--namespace", self.namespace, *words]
        environment = {**self.environment, **({"KUBE_EDITOR": editor} if editor else {})}
        done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, timeout=90)
        assert done.returncode == code, done.stderr
        unexpected = [line for line in done.stderr.splitlines() if not (may_say and may_say in line)]
        assert says in done.stderr if says else not unexpected, done.stderr
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
    found = _fresh(config, f"{plain[:40]}-{time.time_ns() % 10**9}")
    yield found
    found.run("delete", "namespace", found.namespace, "--wait=false", may_say=CLUSTER_SCOPED)


def _fresh(config: Path, name: str) -> Kubectl:
    found = Kubectl(config, name)
    found.run("create", "namespace", name)
    until(lambda: found.run("get", "serviceaccounts", "-o", "name"))
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
        ("jsonpath-as-json={.items[*].status.phase}", '"Running",\n    "Running"'),
        ("go-template={{range .items}}{{.status.phase}} {{end}}", "Running Running"),
        ("custom-columns=NAME:.metadata.name,UID:.metadata.uid", "UID"),
    ],
    ids=["table", "wide", "yaml", "json", "name", "jsonpath", "jsonpath-as-json", "template", "columns"],
)
def test_get(standing: Kubectl, form: str, part: str) -> None:
    assert part in standing.run("get", "pods", *(["-o", form] if form else []))


@pytest.mark.parametrize(
    ("form", "content", "part"),
    [
        ("jsonpath-file", "{.items[*].status.phase}", "Running Running"),
        ("go-template-file", "{{range .items}}{{.status.phase}} {{end}}", "Running Running"),
        ("custom-columns-file", "NAME PHASE\n.metadata.name .status.phase\n", "PHASE"),
    ],
    ids=["jsonpath", "template", "columns"],
)
def test_get_with_output_formats(standing: Kubectl, tmp_path: Path, form: str, content: str, part: str) -> None:
    (tmp_path / "form").write_text(content)
    assert part in standing.run("get", "pods", "-o", f"{form}={tmp_path / 'form'}")


def test_get_selected(kubectl: Kubectl) -> None:
    kubectl.app(3)
    assert len(kubectl.read("pods", "-l", "app=web", "--field-selector=status.phase=Running")["items"]) == 3
    assert kubectl.read("pods", "-l", "app=web", "--field-selector=status.phase!=Running")["items"] == []
    assert len(kubectl.run("get", "pods", "-o", "name", "--chunk-size=1").split()) == 3


def test_get_sorted(kubectl: Kubectl) -> None:
    for name, rank in (("a", 2), ("b", 3), ("c", 1)):
        kubectl.run("create", "configmap", name)
        kubectl.run("label", "configmap", name, f"rank={rank}")
    ranked = ("get", "configmaps", "-l", "rank", "--sort-by=.metadata.labels.rank")
    assert [line.split()[0] for line in kubectl.run(*ranked, "--no-headers").splitlines()] == ["c", "a", "b"]


def test_get_all(standing: Kubectl) -> None:
    kinds = {item["kind"] for item in standing.read("all")["items"]}
    assert kinds == {"Deployment", "ReplicaSet", "Pod", "Service"}


def test_get_watch(kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", "-", given=CONFIG % "")
    words = ("get", "configmap", "c", "-w", "-o", "jsonpath={.data}{'\\n'}")
    with Processes() as processes:
        command = (KUBECTL, "-n", kubectl.namespace, *words)
        watch = processes.start(*command, env=kubectl.environment, stdout=subprocess.PIPE)
        assert watch.stdout is not None
        watch.stdout.readline()
        kubectl.run("apply", "-f", "-", given=CONFIG % "a: b")
        assert json.loads(watch.stdout.readline()) == {"a": "b"}
        watch.stdout.close()


@pytest.mark.parametrize("kind", ["deployment", "replicaset", "pod", "node", "namespace", "serviceaccount", "service"])
def test_describe(standing: Kubectl, kind: str) -> None:
    old = kind == "service" and minor() < 32  # later ones ask for EndpointSlices
    assert "Labels:" in standing.run("describe", kind, may_say=OLD_ENDPOINTS if old else "")


@pytest.mark.parametrize("what", ["pods", "deployment.spec.strategy", "hpa.spec.metrics", "crd.spec.versions"])
def test_explain(standing: Kubectl, what: str) -> None:
    text = standing.run("explain", "--recursive", what)
    assert text.startswith(("KIND:", "GROUP:"))
    assert "<string>" in text


def test_client_side_apply(kubectl: Kubectl) -> None:
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
    assert "+  a: z" in kubectl.run("diff", "-f", "-", given=CONFIG % "a: z", code=1)


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


def test_edit(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.run("create", "deployment", "web", "--image=nginx:1", "--replicas=2")
    editor = tmp_path / "editor"
    editor.write_text(EDITOR)
    editor.chmod(0o700)
    said = kubectl.run("edit", "deployment", "web", "--output-patch", editor=str(editor))
    assert said.startswith('Patch: {"spec":{"replicas":3,')
    assert "deployment.apps/web edited" in said
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    spec = kubectl.read("deployment", "web")["spec"]
    assert (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"]) == (3, "nginx:2")
    kubectl.run("edit", "deployment", "web", editor="true", may_say="Edit cancelled, no changes made.")


def _lives(pod: Any) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def test_scale(kubectl: Kubectl) -> None:
    kubectl.app()
    kubectl.run("scale", "deployment/web", "--replicas=4", "--current-replicas=2")
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl.read("deployment", "web")["status"]["readyReplicas"] == 4
    kubectl.run("scale", "deployment/web", "--replicas=3", "--current-replicas=2", code=1, says="Expected replicas")
    kubectl.run("scale", "deployment/web", "--replicas=0")
    until(lambda: kubectl.read("pods")["items"] == [])


def test_rollouts(kubectl: Kubectl) -> None:
    kubectl.app(image="nginx:1")
    kubectl.run("rollout", "pause", "deployment/web")
    kubectl.run("set", "image", "deployment/web", "c=nginx:2")
    kubectl.run("rollout", "resume", "deployment/web")
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl.run("rollout", "history", "deployment/web").split()[-4:] == ["1", "<none>", "2", "<none>"]
    kubectl.run("rollout", "undo", "deployment/web", may_say="last-applied-configuration")  # since 1.36
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


def test_wait_for_deletion(kubectl: Kubectl) -> None:
    kubectl.run("run", "p", "--image=nginx", "--annotations=sandbox.kcm.dev/stop-time=3s")
    kubectl.run("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    kubectl.run("delete", "pod", "p", "--wait=false")
    kubectl.run("wait", "--for=delete", "pod/p", "--timeout=60s")
    assert kubectl.read("pods")["items"] == []


def test_wait_for_a_field(kubectl: Kubectl) -> None:
    needs(23, "wait --for=jsonpath")
    kubectl.run("create", "deployment", "web", "--image=nginx", "--replicas=2")
    kubectl.run("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=60s")


def test_wait_for_creation(kubectl: Kubectl) -> None:
    needs(31, "wait --for=create")
    kubectl.run("create", "deployment", "web", "--image=nginx")
    kubectl.run("wait", "--for=create", "replicaset", "-l", "app=web", "--timeout=60s")


def _nodes_of(kubectl: Kubectl) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in kubectl.read("pods")["items"] if _lives(pod))


def test_nodes_are_cordoned_tainted_and_drained(kubectl: Kubectl) -> None:
    def state() -> str:
        return kubectl.run("get", "node", "node-1", "--no-headers").split()[1]

    kubectl.app(3)
    assert "node-1" in _nodes_of(kubectl)
    kubectl.run("cordon", "node-1")
    assert state() == "Ready,SchedulingDisabled"
    kubectl.run("label", "pods", "--all", "goes=away")
    kubectl.run("drain", "node-1", "--pod-selector=goes=away", "--timeout=60s")  # not those of other tests
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")
    nodes = _nodes_of(kubectl)
    assert len(nodes) == 3
    assert set(nodes) == {"node-2", "node-3"}
    kubectl.run("taint", "node", "node-1", "a=b:NoSchedule")
    taints = [taint["key"] for taint in kubectl.read("node", "node-1")["spec"]["taints"]]
    assert sorted(taints) == ["a", "node.kubernetes.io/unschedulable"]
    kubectl.run("taint", "node", "node-1", "a-")
    kubectl.run("uncordon", "node-1")
    assert state() == "Ready"
    until(lambda: "taints" not in kubectl.read("node", "node-1")["spec"])


def test_a_budget_delays_a_drain(kubectl: Kubectl) -> None:
    kubectl.run("run", "lone", "--image=nginx", "--labels=app=lone")
    kubectl.run("wait", "--for=condition=Ready", "pod/lone", "--timeout=60s")
    kubectl.run("apply", "-f", "-", given=BUDGET)
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


def test_auth_can_i_list(standing: Kubectl) -> None:
    assert "*.*" in standing.run("auth", "can-i", "--list")


def test_auth_whoami(standing: Kubectl) -> None:
    needs(28, "auth whoami")
    assert "system:masters" in standing.run("auth", "whoami")


def test_top(standing: Kubectl) -> None:
    assert len(standing.run("top", "pods").splitlines()) == 3
    assert "node-1" in standing.run("top", "nodes")


def test_create_token(kubectl: Kubectl) -> None:
    needs(24, "create token")
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
    until(lambda: kubectl.read("replicasets,pods")["items"] == [])


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
    since = {"cronjob": 21, "poddisruptionbudget": 22}  # before, in versions that v1.36 does not serve
    needs(since.get(words[0], 0), f"create {words[0]}")
    assert "created" in kubectl.run("create", *words)


def test_create_cluster_scoped_objects(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    kubectl.run("create", "clusterrole", name, "--verb=get", "--resource=pods")
    kubectl.run("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=u")
    kubectl.run("create", "priorityclass", name, "--value=5")
    made = (f"clusterrole/{name}", f"clusterrolebinding/{name}", f"priorityclass/{name}")
    kubectl.run("delete", *made, may_say=CLUSTER_SCOPED)


def test_expose_and_autoscale(kubectl: Kubectl) -> None:
    kubectl.app()
    kubectl.run("expose", "deployment", "web", "--port=80")
    kubectl.run("autoscale", "deployment", "web", "--max=4", "--cpu-percent=70", may_say=OLD_FLAG)
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
    needs(27, "debug --profile=general")
    kubectl.run("run", "p", "--image=nginx")
    kubectl.run("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    kubectl.run("debug", "p", "--image=busybox", "-c", "look", "--profile=general")
    assert kubectl.read("pod", "p")["spec"]["ephemeralContainers"][0]["name"] == "look"


def test_replace(kubectl: Kubectl) -> None:
    kubectl.run("create", "-f", "-", given=CONFIG % "a: b")
    kubectl.run("replace", "-f", "-", given=CONFIG % "c: d")
    kubectl.run("replace", "--force", "-f", "-", given=CONFIG % "e: f")
    assert kubectl.read("configmap", "c")["data"] == {"e": "f"}


@pytest.mark.parametrize("what", ["logs", "exec", "attach"])
def test_a_container_without_outputs_explains_how_to_set_them(kubectl: Kubectl, what: str) -> None:
    kubectl.run("run", "p", "--image=nginx")
    kubectl.run("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    rest = ["--", "nginx", "-t"] if what == "exec" else []
    kubectl.run(what, "p", *rest, code=1, says="annotation sandbox.kcm.dev/")


def test_events(kubectl: Kubectl) -> None:
    needs(26, "kubectl events")
    kubectl.app(1)
    assert "ScalingReplicaSet" in kubectl.run("events", "--for=deployment/web")


def test_get_events(kubectl: Kubectl) -> None:
    kubectl.app(1)
    assert "Scheduled" in kubectl.run("get", "events", "--field-selector=involvedObject.kind=Pod")


KUSTOMIZATION = """
resources: [app.yaml]
namePrefix: my-
replicas: [{name: web, count: 3}]
images: [{name: nginx, newTag: "2"}]
configMapGenerator: [{name: settings, literals: [a=b]}]
"""


def test_kustomize(kubectl: Kubectl, tmp_path: Path) -> None:
    needs(21, "kustomize 4")
    (tmp_path / "app.yaml").write_text(APP % {"replicas": 1, "image": "nginx:1"})
    (tmp_path / "kustomization.yaml").write_text(KUSTOMIZATION)
    kubectl.run("apply", "-k", str(tmp_path))
    kubectl.run("rollout", "status", "deployment/my-web", "--timeout=60s")
    assert kubectl.read("deployment", "my-web")["status"]["readyReplicas"] == 3
    assert kubectl.run("diff", "-k", str(tmp_path)) == ""
    kubectl.run("delete", "-k", str(tmp_path))


def test_apply_with_prune(kubectl: Kubectl, tmp_path: Path) -> None:
    needs(27, "kinds of today in --prune")
    for name in ("a", "b"):
        metadata = {"name": name, "labels": {"app": "x"}}
        doc = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        (tmp_path / f"{name}.json").write_text(json.dumps(doc))
    words = ("apply", "--prune", "-l", "app=x", "--prune-allowlist=core/v1/ConfigMap", "-f")
    kubectl.run(*words, str(tmp_path))
    (tmp_path / "b.json").unlink()
    assert "configmap/b pruned" in kubectl.run(*words, str(tmp_path))
    assert [one["metadata"]["name"] for one in kubectl.read("configmaps", "-l", "app=x")["items"]] == ["a"]


@pytest.mark.parametrize(
    "words",
    [
        ("image", "deployment/web", "c=nginx:2"),
        ("env", "deployment/web", "A=B"),
        ("resources", "deployment/web", "--limits=cpu=1"),
        ("serviceaccount", "deployment/web", "default"),
        ("selector", "service/web", "app=other"),
    ],
    ids=lambda words: words[0],
)
def test_set(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    kubectl.app(1)
    kubectl.run("create", "service", "clusterip", "web", "--tcp=80")
    assert "updated" in kubectl.run("set", *words) or words[0] == "serviceaccount"
    kubectl.run("rollout", "status", "deployment/web", "--timeout=60s")


def test_a_certificate_is_requested_approved_and_used(kubectl: Kubectl, tmp_path: Path) -> None:
    needs(26, "auth whoami")
    key, request = tmp_path / "key", tmp_path / "csr"
    private = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, "jane"), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "devs")]
    asked = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(private, hashes.SHA256())
    plain = serialization.NoEncryption()
    key.write_bytes(private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    request.write_bytes(base64.b64encode(asked.public_bytes(serialization.Encoding.PEM)))
    name = kubectl.namespace
    spec = {
        "request": request.read_text(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    doc = {"kind": "CertificateSigningRequest", "metadata": {"name": name}, "spec": spec}
    kubectl.run("create", "-f", "-", given=json.dumps({"apiVersion": "certificates.k8s.io/v1", **doc}))
    kubectl.run("certificate", "approve", name)
    kubectl.run("wait", "--for=jsonpath={.status.certificate}", f"csr/{name}", "--timeout=30s")
    (tmp_path / "crt").write_bytes(base64.b64decode(kubectl.read("csr", name)["status"]["certificate"]))
    server = kubectl.run("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    config: dict[str, Any] = {"kind": "Config", "apiVersion": "v1", "current-context": "c"}
    config["clusters"] = [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}]
    config["users"] = [{"name": "c", "user": {"client-certificate": str(tmp_path / "crt"), "client-key": str(key)}}]
    config["contexts"] = [{"name": "c", "context": {"cluster": "c", "user": "c"}}]
    (tmp_path / "config").write_text(json.dumps(config))
    who = json.loads(Kubectl(tmp_path / "config", "default").run("auth", "whoami", "-o", "json"))["status"]["userInfo"]
    assert (who["username"], who["groups"]) == ("jane", ["devs", "system:authenticated"])
    kubectl.run("delete", "csr", name, may_say=CLUSTER_SCOPED)


def test_auth_reconcile(kubectl: Kubectl) -> None:
    role: dict[str, Any] = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    role["metadata"] = {"name": "x", "namespace": kubectl.namespace}  # kubectl asks for the namespace by it
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    doc = json.dumps({**role, "rules": rules})
    assert "reconciled" in kubectl.run("auth", "reconcile", "-f", "-", given=doc, says="missing rules added")
    assert "reconciled" in kubectl.run("auth", "reconcile", "-f", "-", given=doc)


def test_cluster_info_dump(standing: Kubectl, tmp_path: Path) -> None:
    standing.run("cluster-info", "dump", f"--output-directory={tmp_path}", f"--namespaces={standing.namespace}")
    assert json.loads((tmp_path / standing.namespace / "pods.json").read_text())["items"]
