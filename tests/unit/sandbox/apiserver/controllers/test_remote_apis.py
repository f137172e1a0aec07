"""APIServices of other servers."""

import asyncio
import json
from typing import Any

import pytest

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.api import Api

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MERGE = {"headers": {"content-type": "application/merge-patch+json"}}
PORT = {"name": "https", "port": 443}


def api_service(group: str = "r.test", version: str = "v1", **spec: Any) -> dict[str, Any]:
    fields = {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 10}
    fields |= {"insecureSkipTLSVerify": True, "service": {"namespace": "default", "name": "s"}}
    return {"metadata": {"name": f"{version}.{group}"}, "spec": fields | spec}


def endpoints(*, ready: bool | None = True, port: str = "https") -> dict[str, Any]:
    found = {"addresses": ["10.9.9.9"], "conditions": {} if ready is None else {"ready": ready}}
    labels = {"kubernetes.io/service-name": "s"}
    ports = [{"name": port, "port": 1}]
    return {"metadata": {"name": "s-1", "labels": labels}, "addressType": "IPv4", "endpoints": [found], "ports": ports}


async def condition(api: Api, name: str = "v1.r.test") -> Any:
    await asyncio.sleep(0.1)
    (found,) = (await api.json("GET", f"{API_SERVICES}/{name}"))["status"]["conditions"]
    return found


@pytest.mark.parametrize(
    ("service", "piece", "reason"),
    [
        (None, None, "ServiceNotFound"),
        ({"ports": [{"port": 80}]}, None, "ServicePortError"),
        ({"ports": [PORT]}, None, "EndpointsNotFound"),
        ({"ports": [PORT]}, endpoints(ready=False), "MissingEndpoints"),
        ({"ports": [PORT]}, endpoints(port="other"), "MissingEndpoints"),
        ({"ports": [PORT]}, endpoints(), "FailedDiscoveryCheck"),
        ({"ports": [PORT]}, endpoints(ready=None), "FailedDiscoveryCheck"),
        ({"type": "ExternalName", "externalName": "x.test"}, None, "FailedDiscoveryCheck"),
    ],
)
async def test_why_a_server_cannot_be_reached(api: Api, service: Any, piece: Any, reason: str) -> None:
    made = await api.json("POST", API_SERVICES, api_service(), status=201)
    assert made["status"] == {}
    first = await condition(api)
    if service is not None:
        await api.json("POST", SERVICES, {"metadata": {"name": "s"}, "spec": service}, status=201)
    if piece is not None:
        await api.json("POST", SLICES, piece, status=201)
    found = await condition(api)
    assert (found["type"], found["status"], found["reason"]) == ("Available", "False", reason)
    assert found["lastTransitionTime"] == first["lastTransitionTime"]
    owners = (await api.json("GET", f"{API_SERVICES}/v1.r.test"))["metadata"]["managedFields"]
    assert ("kube-apiserver", "status") in [(one["manager"], one.get("subresource")) for one in owners]


async def test_the_group_is_in_discovery_and_unavailable(api: Api) -> None:
    for version, priority in (("v1beta1", 5), ("v1", 10)):
        doc = api_service(version=version, versionPriority=priority)
        await api.json("POST", API_SERVICES, doc, status=201)
    await condition(api)
    group = await api.json("GET", "/apis/r.test")
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1"]
    assert (await api.json("GET", "/apis"))["groups"][-1]["name"] == "r.test"
    found = json.loads((await api.call("GET", "/apis", headers={"accept": AGGREGATED})).body)["items"][-1]
    assert found["versions"] == [{"version": v, "freshness": "Stale"} for v in ("v1", "v1beta1")]
    for path in ("", "/things", "/namespaces/x/things/y"):
        answer = await api.call("GET", f"/apis/r.test/v1{path}")
        assert (answer.status, answer.body) == (503, b"service unavailable\n")
    assert (await api.call("GET", "/apis/r.test/v2/things")).status == 404
    nobody = InProcessTransport(api.server.api, User("x"))
    assert (await nobody.send(Request("GET", "/apis/r.test/v1/things"))).status == 403
    await api.json("DELETE", f"{API_SERVICES}/v1.r.test")
    await api.json("DELETE", f"{API_SERVICES}/v1beta1.r.test")
    await asyncio.sleep(0.1)
    assert (await api.call("GET", "/apis/r.test")).status == 404


async def test_local_api_services_are_available(api: Api) -> None:
    await api.json("DELETE", f"{API_SERVICES}/v1.apps")
    await api.json("POST", API_SERVICES, api_service("apps"), status=201)
    assert (await condition(api, "v1.apps"))["reason"] == "Passed"
    assert (await api.call("GET", "/apis/apps/v1")).status == 200
