"""A sandbox never connects to the addresses of its pods, nodes and Services, which may exist on the host's network."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

import pytest

from kcm_cli.testing import HostOptions, Sandbox
from tests.kit.sockets import watched

Tree = dict[str, Any]
REGISTRATION = "admissionregistration.k8s.io/v1"
LABELS = {"app": "hook"}


@pytest.fixture(scope="module")
def sandbox() -> Any:
    with watched() as outside, Sandbox(HostOptions(nodes=1)) as made:
        yield made, outside


def ask(sandbox: Sandbox, method: str, path: str, doc: Tree | None = None) -> Tree:
    """The answer, or the Status of the refusal."""
    body = None if doc is None else json.dumps(doc).encode()
    headers = {"Authorization": f"Bearer {sandbox.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(sandbox.url + path, body, headers, method=method)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            found: Tree = json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        with error:
            found = {"code": error.code, "message": error.read().decode()}
    return found


def workload() -> list[Tree]:
    container = {"name": "c", "image": "hook", "readinessProbe": {"httpGet": {"path": "/", "port": 9443}}}
    container["lifecycle"] = {"preStop": {"httpGet": {"path": "/", "port": 9443}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "hook"},
            "spec": {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "hook"},
            "spec": {"selector": LABELS, "ports": [{"port": 443, "targetPort": 9443}]},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.remote.test"},
            "spec": {
                "group": "remote.test",
                "version": "v1",
                "groupPriorityMinimum": 1,
                "versionPriority": 1,
                "insecureSkipTLSVerify": True,
                "service": {"namespace": "default", "name": "hook"},
            },
        },
    ]


def definition(client: Tree) -> Tree:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": v, "served": True, "storage": v == "v1", "schema": schema} for v in ("v1", "v2")]
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.test"},
        "spec": {
            "group": "x.test",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def configuration(kind: str, name: str, client: Tree) -> Tree:
    rule = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {"name": f"{name}.x.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule]}
    selected = {"matchConditions": [{"name": "one", "expression": f"object.metadata.name == '{name}'"}]}
    return {
        "apiVersion": REGISTRATION,
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{**webhook, **selected, "clientConfig": client}],
    }


def test_no_socket_leaves_this_machine(sandbox: tuple[Sandbox, list[str]]) -> None:
    cluster, outside = sandbox
    by_service = {"service": {"namespace": "default", "name": "hook"}}
    cluster.apply(*workload(), definition(by_service))

    def ready() -> list[Tree]:
        pods: list[Tree] = ask(cluster, "GET", "/api/v1/namespaces/default/pods")["items"]
        return [pod for pod in pods if pod["status"].get("podIP")] if len(pods) == 2 else []

    pod = cluster.wait(ready, timeout=30)[0]
    cluster.advance(60)
    service = ask(cluster, "GET", "/api/v1/namespaces/default/services/hook")["spec"]
    node = ask(cluster, "GET", "/api/v1/nodes/node-1")["status"]["addresses"][0]["address"]
    clients = {
        "service": by_service,
        "pod": {"url": f"https://{pod['status']['podIP']}:9443/"},
        "cluster-ip": {"url": f"https://{service['clusterIP']}/"},
        "node": {"url": f"https://{node}:10250/"},
        "dns": {"url": "https://hook.default.svc/"},
        "kubernetes": {"service": {"namespace": "default", "name": "kubernetes"}},
    }
    for kind in ("Mutating", "Validating"):
        cluster.apply(*(configuration(kind, name, client) for name, client in clients.items()))
    for name in clients:
        path = "/api/v1/namespaces/default/configmaps"
        refused = ask(cluster, "POST", path, {"metadata": {"name": name}})
        assert f'failed calling webhook \\"{name}.x.test\\"' in refused["message"]

    things = "/apis/x.test/{}/namespaces/default/things"
    thing = {"apiVersion": "x.test/v1", "kind": "Thing", "metadata": {"name": "a"}}
    ask(cluster, "POST", things.format("v1"), thing)
    assert "conversion webhook for x.test/v1, Kind=Thing failed" in ask(cluster, "GET", things.format("v2"))["message"]

    pods, name = "/api/v1/namespaces/default/pods", pod["metadata"]["name"]
    for path in (
        f"{pods}/{name}/log",
        f"{pods}/{name}:9443/proxy/",
        f"{pods}/{name}/exec?command=x&stdout=true",
        f"{pods}/{name}/portforward?ports=1",
        "/api/v1/namespaces/default/services/https:hook:443/proxy/",
        "/api/v1/nodes/node-1/proxy/metrics",
        "/apis/remote.test/v1",
        "/apis/remote.test/v1/namespaces/default/anything",
    ):
        assert ask(cluster, "GET", path)["code"] >= 400
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x.y.z"}}
    assert ask(cluster, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]
    assert ask(cluster, "GET", "/api/v1/componentstatuses")["items"]
    cluster.advance(600)
    assert outside == []
