"""Subresources of kubelets: what is said before one is asked."""

from typing import Any

import pytest

from tests.unit.sandbox.apiserver.conftest import Api

PODS = "/api/v1/namespaces/default/pods"


async def pod(api: Api, name: str, *containers: str, **spec: Any) -> None:
    filled = {"containers": [{"name": one, "image": "i"} for one in containers], **spec}
    await api.json("POST", PODS, {"metadata": {"name": name}, "spec": filled}, status=201)


@pytest.mark.parametrize(
    ("path", "query", "status", "told"),
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
        ("one/exec", {"command": "x"}, 400, "pod one does not have a host assigned"),
        ("two/attach", {"container": "b"}, 400, "pod two does not have a host assigned"),
        ("two/portforward", {}, 400, "pod two does not have a host assigned"),
        ("one/proxy", {}, 400, "address not allowed"),
        ("https:one:x/proxy", {}, 400, "address not allowed"),
        ("a:b:c:d/proxy", {}, 400, 'invalid pod request "a:b:c:d"'),
        ("bound/log", {}, 501, "needs a kubelet"),
        ("bound/exec", {}, 501, "needs a kubelet"),
    ],
)
def test_what_needs_no_kubelet(served: Any, path: str, query: dict[str, str], status: int, told: str) -> None:
    async def test(api: Api) -> None:
        await pod(api, "one", "a")
        await pod(api, "two", "a", "b")
        await pod(api, "bound", "a", nodeName="n")
        answer = await api.call("GET", f"{PODS}/{path}", query=query)
        assert answer.status == status, answer.body
        assert told in answer.body.decode().replace('\\"', '"')

    served(test)
