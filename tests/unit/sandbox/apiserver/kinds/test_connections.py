"""Subresources of kubelets: errors before the kubelet is called."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.types import Tree, User
from tests.kit.api import Api

PODS = "/api/v1/namespaces/default/pods"


async def node(api: Api, *addresses: str, **annotations: str) -> None:
    written = {f"sandbox.kcm.dev/{name}": value for name, value in annotations.items()}
    made = await api.make("/api/v1/nodes", {"metadata": {"name": "n", "annotations": written}})
    status = {"addresses": [{"type": kind, "address": to} for kind, _, to in (one.partition("=") for one in addresses)]}
    await api.put("/api/v1/nodes/n/status", {**made, "status": status})


async def pod(api: Api, name: str, *containers: str, **spec: Any) -> None:
    filled = {"containers": [{"name": one, "image": "i"} for one in containers], **spec}
    await api.json("POST", PODS, {"metadata": {"name": name}, "spec": filled}, status=201)


@pytest.mark.parametrize(
    ("path", "query", "status", "problem"),
    [
        ("one/log", {}, 204, ""),
        ("one/log", {"container": "zz"}, 400, "container zz is not valid for pod one"),
        ("two/log", {}, 400, "a container name must be specified for pod two, choose one of: [a b]"),
        ("none/log", {}, 404, 'pods "none" not found'),
        ("one/log", {"tailLines": "x"}, 400, "invalid syntax"),
        ("one/log", {"tailLines": "-1"}, 422, "tailLines: Invalid value: -1"),
        ("one/log", {"limitBytes": "0"}, 422, "limitBytes: Invalid value: 0"),
        ("one/log", {"sinceSeconds": "0"}, 422, "sinceSeconds: Invalid value: 0"),
        ("one/log", {"sinceSeconds": "1", "sinceTime": "2019-01-01T00:00:00Z"}, 422, "at most one of"),
        ("one/log", {"stream": "All"}, 422, "stream: Forbidden"),
        ("one/log", {"sinceTime": "yesterday"}, 400, "yesterday"),
        ("one/exec", {"command": "x"}, 400, "pod one does not have a host assigned"),
        ("two/attach", {"container": "b"}, 400, "pod two does not have a host assigned"),
        ("two/portforward", {}, 400, "pod two does not have a host assigned"),
        ("one/proxy", {}, 400, "address not allowed"),
        ("https:one:x/proxy", {}, 400, "address not allowed"),
        ("a:b:c:d/proxy", {}, 400, 'invalid pod request "a:b:c:d"'),
        ("bound/log", {}, 400, 'container "a" in pod "bound" is waiting to start: ContainerCreating'),
        ("bound/exec", {}, 400, "Upgrade request required"),
        ("bound/portforward", {}, 400, "Upgrade request required"),
        ("gone/log", {}, 404, 'pods "nope" not found'),
        ("gone/log", {"container": "zz"}, 400, "container zz is not valid for pod gone"),
        ("gone/exec", {"command": "x"}, 404, 'pods "nope" not found'),
        ("gone/portforward", {}, 404, 'pods "nope" not found'),
    ],
)
async def test_what_needs_no_kubelet(api: Api, path: str, query: dict[str, str], status: int, problem: str) -> None:
    await pod(api, "one", "a")
    await pod(api, "two", "a", "b")
    await pod(api, "bound", "a", nodeName="n")
    await pod(api, "gone", "a", nodeName="nope")
    await node(api, "InternalIP=172.18.0.3")
    answer = await api.call("GET", f"{PODS}/{path}", query=query)
    assert answer.status == status, answer.body
    assert problem in answer.body.decode().replace('\\"', '"')


@pytest.mark.parametrize("path", ["log", "exec?stdout=1", "portforward"])
async def test_a_kubelet_without_an_address(api: Api, path: str) -> None:
    await pod(api, "a", "c", nodeName="n")
    await node(api)
    answer = await api.call("GET", f"{PODS}/a/{path}", connection="Upgrade", upgrade="websocket")
    assert (answer.status, answer.message) == (500, "no preferred addresses found; known addresses: []")


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
@pytest.mark.parametrize(
    ("path", "query", "status", "problem"),
    [
        ("bound/exec", {"command": "x"}, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        (
            "bound/exec",
            {"command": "x", "stderr": "1", "tty": "1"},
            400,
            "you must specify at least 1 of stdin, stdout, stderr",
        ),
        ("bound/exec", {"command": "x", "stdout": "1"}, 500, 'container not found ("a")'),
        ("bound/attach", {"stdout": "1"}, 500, "container a not found in pod bound_default"),
        ("ended/exec", {"command": "x", "stdout": "1"}, 500, 'container not found ("a")'),
        ("ended/portforward", {"ports": "80"}, 500, 'pod not found ("ended_default")'),
    ],
)
async def test_what_a_kubelet_refuses_is_text(
    api: Api, path: str, query: dict[str, str], status: int, problem: str, protocol: str
) -> None:
    await pod(api, "bound", "a", nodeName="n")
    await pod(api, "ended", "a", nodeName="n")
    await node(api, "InternalIP=172.18.0.3")
    times = {"startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-01T00:00:01Z"}
    state = {"terminated": {"exitCode": 0, "containerID": "c://1", **times}}
    ended = {"phase": "Succeeded", "containerStatuses": [{"name": "a", "state": state}]}
    assert (await api.merge(f"{PODS}/ended/status", {"status": ended})).status == 200
    answer = await api.call("GET", f"{PODS}/{path}", query=query, connection="Upgrade", upgrade=protocol)
    assert (answer.status, answer.body.decode()) == (status, problem)
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("path", "query", "problem"),
    [
        ("exec", {"command": "x", "stdout": "1"}, "error dialing backend: "),
        ("attach", {"stdout": "1"}, "error dialing backend: "),
        ("portforward", {"ports": "80"}, "error dialing backend: "),
        ("log", {}, 'Get "https://172.18.0.3:10250/containerLogs/default/a/c": '),
        (
            "log",
            {"tailLines": "1", "follow": "1", "timestamps": "0"},
            'Get "https://172.18.0.3:10250/containerLogs/default/a/c?follow=true&tailLines=1": ',
        ),
    ],
)
async def test_the_kubelet_of_a_failed_node_cannot_be_dialed(
    api: Api, path: str, query: dict[str, str], problem: str
) -> None:
    await pod(api, "a", "c", nodeName="n")
    await node(api, "Hostname=n", "InternalIP=172.18.0.3", simulated="true", failed="true")
    status = {"podIP": "10.244.1.5", "podIPs": [{"ip": "10.244.1.5"}]}
    assert (await api.merge(f"{PODS}/a/status", {"status": status})).status == 200
    proxied = await api.get(f"{PODS}/a:80/proxy/")
    where = "dial tcp 10.244.1.5:80: connect: no route to host"
    assert (proxied.status, proxied.message) == (503, f"error trying to reach service: {where}")
    ask = {"connection": "Upgrade", "upgrade": "SPDY/3.1"} if path != "log" else {}
    answer = await api.call("GET", f"{PODS}/a/{path}", query=query, **ask)
    assert (answer.status, answer.message, answer.doc.get("reason")) == (
        500,
        f"{problem}dial tcp 172.18.0.3:10250: connect: no route to host",
        None,
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/v1/nodes/x:10250/proxy/metrics", 'nodes "x" not found'),
        ("/api/v1/nodes/ftp:x:1/proxy", 'invalid node request "ftp:x:1"'),
        ("/api/v1/namespaces/default/services/https:x:web/proxy/y", 'services "x" not found'),
        ("/api/v1/namespaces/default/services/:/proxy", 'invalid service request ":"'),
    ],
)
async def test_a_proxy_is_asked_for_by_scheme_name_and_port(api: Any, path: str, message: str) -> None:
    assert (await api.json("GET", path, status=404 if "found" in message else 400))["message"] == message


@pytest.mark.parametrize(
    ("subsets", "status", "message"),
    [
        ([], 503, 'no endpoints available for service "s"'),
        ([{"notReadyAddresses": [{"ip": "10.0.0.1"}]}], 503, 'no endpoints available for service "s:web"'),
        (None, 404, 'services "s" not found'),
    ],
)
async def test_a_proxy_to_a_service_without_endpoints(
    api: Api, subsets: list[Tree] | None, status: int, message: str
) -> None:
    ports = [{"name": "web", "port": 80}]
    await api.make("/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}})
    if subsets is not None:
        endpoints = {"metadata": {"name": "s"}, "subsets": subsets}
        await api.make("/api/v1/namespaces/default/endpoints", endpoints)
    found = await api.get("/api/v1/namespaces/default/services/s:web/proxy/")
    assert (found.status, found.message) == (status, message)


async def test_a_binding_to_nothing(api: Any) -> None:
    bindings = "/api/v1/namespaces/default/bindings"
    refused = await api.json("POST", bindings, {}, status=500)
    assert refused["message"] == "target.name: Required value"
    refused = await api.json("POST", bindings, {"target": {"name": "n"}}, status=400)
    assert refused["message"] == "Name parameter required."


async def test_an_address_of_ipv6_is_in_brackets(api: Api) -> None:
    await pod(api, "a", "c", nodeName="n")
    await node(api, "InternalIP=fd00::1", simulated="true", failed="true")
    assert (await api.get(f"{PODS}/a/log")).message == (
        'Get "https://[fd00::1]:10250/containerLogs/default/a/c": dial tcp [fd00::1]:10250: connect: no route to host'
    )


@pytest.mark.parametrize(
    ("path", "status"), [("exec?stdout=1", 400), ("attach", 400), ("portforward", 400), ("proxy/", 400), ("log", 406)]
)
async def test_only_logs_are_negotiated(api: Api, path: str, status: int) -> None:
    await pod(api, "a", "c")
    assert (await api.call("GET", f"{PODS}/a/{path}", headers={"accept": "text/html"})).status == status


@pytest.mark.parametrize(
    ("verbs", "path", "status"),
    [
        (["get"], "exec?stdout=1", 403),
        (["get"], "attach", 403),
        (["get"], "portforward", 403),
        (["get"], "log", 404),
        (["get"], "proxy/", 400),
        (["get", "create"], "exec?stdout=1", 404),
    ],
)
async def test_connections_need_the_verb_create(api: Api, verbs: list[str], path: str, status: int) -> None:
    """kubernetes#133515: clients of WebSockets begin with a GET."""
    await pod(api, "a", "c", nodeName="nope")
    group, role = "rbac.authorization.k8s.io", {"metadata": {"name": "r"}}
    resources = [f"pods/{one}" for one in ("exec", "attach", "portforward", "log", "proxy")]
    rules = [{"apiGroups": [""], "resources": resources, "verbs": verbs}]
    base = f"/apis/{group}/v1/namespaces/default"
    await api.make(f"{base}/roles", {**role, "rules": rules})
    subjects = [{"kind": "User", "name": "eve", "apiGroup": group}]
    reference = {"kind": "Role", "name": "r", "apiGroup": group}
    await api.make(f"{base}/rolebindings", {**role, "subjects": subjects, "roleRef": reference})
    eve = User("eve", groups=("system:authenticated",))
    headers = {"connection": "Upgrade", "upgrade": "websocket"}
    answer = await api.call("GET", f"{PODS}/a/{path}", headers=headers, user=eve)
    assert answer.status == status
    if status == 403:
        assert answer.message == 'pods "a" is forbidden: '
