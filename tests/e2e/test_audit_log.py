"""The sandbox's audit log beside that of a real kube-apiserver, for the same requests, where KUBEBUILDER_ASSETS is."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.processes import ask, until
from tests.kit.servers import TOKEN, real_server, sandbox_server

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(
        not (Path(ASSETS) / "kube-apiserver").exists(), reason="KUBEBUILDER_ASSETS has no kube-apiserver"
    ),
]
POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:apiserver"]}
- {level: None, userGroups: ["system:serviceaccounts"]}
- {level: Metadata, resources: [{group: "", resources: [secrets]}]}
- {level: Request, verbs: [update]}
- {level: None, nonResourceURLs: ["/readyz*", "/healthz*", "/livez*"]}
- {level: Metadata, nonResourceURLs: ["*"]}
- {level: RequestResponse, namespaces: [default], omitManagedFields: true}
- {level: None}
"""
MAPS, SECRETS = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"
PODS = "/api/v1/namespaces/default/pods"
CHANGING = frozenset(("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"))
"""Of objects, which differ from server to server."""


def requests() -> Iterator[tuple[str, str, Any, dict[str, str]]]:
    """Method, path, body and headers."""
    merge = {"content-type": "application/merge-patch+json"}
    yield "POST", MAPS, {"metadata": {"name": "m"}, "data": {"k": "v"}}, {}
    yield "POST", MAPS, {"metadata": {"name": "m"}}, {}
    yield "POST", MAPS, {"metadata": {"generateName": "g-"}, "data": {"k": "v"}}, {}
    yield "POST", SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "sesame"}}, {}
    yield "GET", f"{MAPS}/m?pretty=true", None, {}
    yield "GET", f"{MAPS}/none", None, {}
    yield "PUT", f"{MAPS}/m", {"metadata": {"name": "m", "resourceVersion": "1"}}, {}
    yield "PUT", f"{MAPS}/m", {"metadata": {"name": "m"}, "data": {"k": "w"}}, {}
    yield "PATCH", f"{MAPS}/m", {"data": {"k": "x"}}, merge
    yield "PATCH", f"{MAPS}/m?fieldManager=me", {"data": {"k": None}}, {**merge, "user-agent": "tool/1.0 (linux)"}
    yield "GET", f"{MAPS}/m", None, {"impersonate-user": "bob"}
    yield "DELETE", f"{MAPS}/m", {"kind": "DeleteOptions", "apiVersion": "v1"}, {}
    yield "DELETE", f"{MAPS}/m", None, {}
    yield "POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}, {}
    yield "GET", "/version", None, {}
    yield "GET", "/apis/no.such.group", None, {}


def recorded(url: str, path: Path) -> list[Any]:
    """The events of these requests, without what differs from run to run."""
    accounts, account = f"{url}/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
    until(lambda: ask(accounts, token=TOKEN, method="POST", body=account).status == 201)
    before = len(path.read_text().splitlines())
    for method, where, body, headers in requests():
        ask(f"{url}{where}", token=TOKEN, method=method, body=body, more=headers)
    return [comparable(json.loads(line)) for line in path.read_text().splitlines()[before:]]


def comparable(event: Any) -> Any:
    for name in ("auditID", "requestReceivedTimestamp", "stageTimestamp"):
        assert event.pop(name)
    for name in ("sourceIPs", "authenticationMetadata"):  # the sandbox has neither
        event.pop(name, None)
    event["user"] = {"username": event["user"]["username"]}
    event["annotations"].pop("authorization.k8s.io/reason")
    return plain(event)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "…" if key in CHANGING else plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return f"{value[:2]}…" if isinstance(value, str) and value.startswith("g-") else value


def is_part(sent: Any, decoded: Any) -> bool:
    """Whether a body is what the real server shows: with its kind, as its internal version has it, and defaults."""
    if isinstance(sent, dict) and isinstance(decoded, dict):
        return all(key == "apiVersion" or is_part(one, decoded.get(key)) for key, one in sent.items())
    if isinstance(sent, list) and isinstance(decoded, list):
        return len(sent) == len(decoded) and all(map(is_part, sent, decoded))
    return bool(sent == decoded)


def test_the_same_requests_give_the_same_events(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    flags = [f"--audit-policy-file={policy}"]
    for name in ("real", "sandbox"):
        (tmp_path / name).mkdir()
    with real_server(Path(ASSETS), tmp_path / "real", *flags, f"--audit-log-path={tmp_path}/real.log") as url:
        expected = recorded(url, tmp_path / "real.log")
    with sandbox_server(tmp_path / "sandbox", *flags, f"--audit-log-path={tmp_path}/sandbox.log") as url:
        found = recorded(url, tmp_path / "sandbox.log")
    assert len(expected) == len(list(requests()))
    for here, there in zip(found, expected, strict=True):
        assert list(here) == list(there)
        assert is_part(here.pop("requestObject", None), there.pop("requestObject", None)), (here, there)
        assert here == there
