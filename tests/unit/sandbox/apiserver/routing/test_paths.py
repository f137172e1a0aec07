"""Paths that are not resources: their methods and media types."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.types import User

THREE = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
STREAMS = f"{THREE}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/", 200),
        ("DELETE", "/apis", 200),
        ("PUT", "/apis/apps", 200),
        ("PUT", "/apis/apiregistration.k8s.io", 405),
        ("POST", "/apis/apps/v1", 405),
        ("POST", "/apis/apps/v2", 404),
        ("POST", "/apis/none.test/v1", 404),
        ("POST", "/api", 405),
        ("POST", "/api/v2", 404),
        ("POST", "/version", 405),
        ("POST", "/healthz", 200),
        ("POST", "/openapi/v3", 200),
        ("GET", "/openapi/v3/nope", 404),
        ("POST", "/openid/v1/jwks", 405),
        ("GET", "/readyz/poststarthook/rbac/bootstrap-roles", 200),
        ("GET", "/readyz/etcd", 404),
        ("GET", "/livez/etcd", 200),
        ("GET", "/livez/", 404),
        ("GET", "/apis//", 404),
        ("GET", "//api/v1", 404),
        ("GET", "/api/v1/namespaces/default/pods/..", 400),
        ("DELETE", "/api/v1/nodes/.", 400),
        ("GET", "/api/v1/nodes/a%b", 400),
        ("GET", "/api/v1/watch/componentstatuses", 404),
        ("POST", "/api/v1/watch/pods", 405),
        ("HEAD", "/api/v1/watch/namespaces/default/pods/x", 405),
        ("OPTIONS", "/api/v1/nodes/x/proxy", 404),
        ("HEAD", "/api/v1/namespaces/default/services/x/proxy/y", 404),
        ("TRACE", "/api/v1/nodes/x/proxy", 405),
        ("GET", "/api/v1/watch/nodes/x/status", 404),
        ("GET", "/index.html", 200),
        ("GET", "//api/v1", 404),
        ("GET", "/apis//v1", 404),
        ("GET", "/api/v1/namespaces//pods", 200),
        ("GET", "/apis/apps/v1/namespaces//deployments", 200),
        ("GET", "/api/v1/namespaces//", 200),
        ("GET", "/api/v1/namespaces//pods/x", 400),
        ("DELETE", "/api/v1/namespaces//pods", 400),
        ("GET", "/api/v1/namespaces//nodes", 404),
        ("GET", "/api/v1/namespaces//pods//log", 404),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405),
        ("GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews/x", 404),
        ("POST", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews", 404),
        ("GET", "/api/v1/bindings", 404),
        ("POST", "/api/v1/pods", 405),
        ("PUT", "/api/v1/componentstatuses/x", 405),
        ("GET", "/api/v1/namespaces/default/pods/x/binding", 405),
        ("GET", "/api/v1/namespaces/default/namespaces", 404),
        ("GET", "/api/v1/namespaces/default/namespaces/default", 404),
        ("PUT", "/api/v1/namespaces/namespaces", 400),
        ("PUT", "/api/v1/namespaces/default/pods/pods", 400),
        ("PUT", "/api/v1/namespaces/pods/pods", 405),
    ],
)
async def test_methods(api: Any, method: str, path: str, status: int) -> None:
    assert (await api.call(method, path)).status == status


@pytest.mark.parametrize(
    ("path", "accept", "produced"),
    [
        ("/api", "text/plain", THREE),
        ("/api/v1", "application/*", THREE),
        ("/apis/apps/v1", "text/plain", THREE),
        ("/version", "application/yaml", "application/json"),
        ("/openid/v1/jwks", "application/json", "application/jwk-set+json"),
        ("/api/v1/namespaces/default/configmaps", "application/*", STREAMS),
        ("/api/v1/namespaces/default/configmaps/x", "text/plain", THREE),
    ],
)
async def test_the_router_accepts_no_wildcards_for_a_group(api: Any, path: str, accept: str, produced: str) -> None:
    answer = await api.call("GET", path, headers={"accept": accept})
    assert answer.status == 406
    status = msgspec.json.decode(answer.body) if answer.headers["content-type"] == "application/json" else {}
    message = f"406: Not Acceptable\n\nAvailable representations: {produced}"
    assert not status or (status["message"], status["details"]) == (message, {})


@pytest.mark.parametrize("path", ["/", "/version"])
async def test_plain_documents_ignore_parameters(api: Any, path: str) -> None:
    answer = await api.call("GET", path, headers={"accept": "application/json;g=x;v=y;as=Z"})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")


async def test_checks_are_listed_and_left_out_on_demand(api: Any) -> None:
    answer = await api.call("GET", "/livez", query={"verbose": "", "exclude": "etcd"})
    lines = str(answer.body.decode()).splitlines()
    assert lines[:4] == ["[+]ping ok", "[+]log ok", "[+]loopback-serving-certificate ok", "[+]etcd excluded: ok"]
    assert lines[-1] == "livez check passed"


async def test_unknown_checks_cannot_be_excluded(api: Any) -> None:
    answer = await api.call("GET", "/readyz", query={"verbose": "", "exclude": "nope"})
    said = 'warn: some health checks cannot be excluded: no matches for "nope"'
    assert answer.body.decode().splitlines()[-2:] == [said, "readyz check passed"]


async def test_the_aggregated_form_has_a_path_without_a_slash(api: Any) -> None:
    wanted = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}
    kinds = [
        msgspec.json.decode((await api.call("GET", path, headers=wanted)).body)["kind"] for path in ("/apis", "/apis/")
    ]
    assert kinds == ["APIGroupDiscoveryList", "APIGroupList"]


async def test_the_aggregated_form_in_yaml(api: Any) -> None:
    form = "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer = await api.get("/apis", accept=form)
    assert (answer.status, answer.headers["content-type"]) == (200, form)
    assert answer.body.startswith(b"apiVersion: apidiscovery.k8s.io/v2")


async def test_a_path_without_a_resource_is_shown_with_its_query(api: Any) -> None:
    path = "/apis/apps/v1/watch"
    answer = await api.server.api.handle(Request("GET", path, (("a", "b"),), {}, b"", sent_query="a=b"))
    why = f"unable to determine kind and namespace from url, {path}?a=b"
    text = f'Internal Server Error: "{path}?a=b": failed to create RequestInfo: {why}\n'
    assert (answer.status, answer.body.decode()) == (500, text)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/html", 406),
        ("application/*", 406),
        ("application/json;as=Table;v=v1;g=meta.k8s.io", 406),
        ("application/json, */*", 404),
    ],
)
async def test_the_forms_of_logs(api: Any, accept: str, status: int) -> None:
    answer = await api.get("/api/v1/namespaces/default/pods/none/log", accept=accept)
    assert answer.status == status


async def test_a_body_of_an_unknown_form_is_refused_even_if_it_is_empty(api: Any) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    answer = await api.call("POST", path, headers={"content-type": "application/octet-stream"})
    assert answer.status == 415


async def test_an_object_for_an_empty_namespace_is_refused(api: Any) -> None:
    doc = {"metadata": {"name": "a"}}
    answer = await api.call("POST", "/api/v1/namespaces//configmaps", body=doc)
    assert answer.status == 422
    causes = msgspec.json.decode(answer.body)["details"]["causes"]
    assert [cause["field"] for cause in causes] == ["metadata.namespace"]


async def test_health_checks_are_counted_until_they_are_forgotten(api: Any) -> None:
    await api.call("GET", "/livez", query={"exclude": "ping"})
    shown = (await api.call("GET", "/metrics/slis")).body.decode()
    assert 'kubernetes_healthcheck{name="etcd",type="livez"} 1' in shown
    assert 'kubernetes_healthchecks_total{name="etcd",status="success",type="livez"} 1' in shown
    assert '"ping"' not in shown
    assert (await api.call("DELETE", "/metrics/slis")).body == b"metrics reset\n"
    assert "etcd" not in (await api.call("GET", "/metrics/slis")).body.decode()


async def test_requests_to_unknown_resources_are_not_counted(api: Any) -> None:
    nobody = replace(api, user=User("nobody", groups=("system:authenticated",)))
    for path in ("nope1", "pods/a/nope2", "namespaces/default/nope3/a/nope4", "nodes/a/nope5"):
        assert (await api.call("GET", f"/api/v1/{path}")).status == 404
        assert (await nobody.call("GET", f"/api/v1/{path}")).status == 403
    assert (await api.call("GET", "/apis/nope6.test/v1/nope7")).status == 404
    assert (await api.call("GET", "/api/v1/nodes/a")).status == 404
    for method in ("NOPE8", "NOPE9", "HEAD"):
        await api.call(method, "/healthz")
    shown = (await api.call("GET", "/metrics")).body.decode()
    assert 'subresource="",verb="other",version=""} 2\n' in shown and "HEAD" not in shown and "NOPE" not in shown
    assert 'resource="nodes",scope="resource",subresource="",verb="GET",version="v1"} 1\n' in shown
    assert "nope" not in shown


async def test_priority_levels_share_the_seats(api: Any) -> None:
    levels = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
    name = "apiserver_flowcontrol_nominal_limit_seats"
    shown = (await api.call("GET", "/metrics")).body.decode()
    for level, seats in (("workload-low", 245), ("system", 74), ("catch-all", 13), ("exempt", 0)):
        assert f'{name}{{priority_level="{level}"}} {seats}\n' in shown
    limited = {"nominalConcurrencyShares": 245, "limitResponse": {"type": "Reject"}}
    await api.json(
        "POST", levels, {"metadata": {"name": "m"}, "spec": {"type": "Limited", "limited": limited}}, status=201
    )
    shown = (await api.call("GET", "/metrics")).body.decode()
    for level, seats in (("m", 300), ("workload-low", 123)):
        assert f'{name}{{priority_level="{level}"}} {seats}\n' in shown
    for each in (await api.json("GET", levels))["items"]:
        await api.call("DELETE", f"{levels}/{each['metadata']['name']}")
    await api.call("GET", "/metrics")


async def test_objects_and_open_watches_are_counted(api: Any) -> None:
    await api.config_map("a")
    watching = await api.watch("/api/v1/namespaces/default/configmaps")
    shown = (await api.call("GET", "/metrics")).body.decode()
    assert 'apiserver_resource_objects{group="apiregistration.k8s.io",resource="apiservices"} ' in shown
    stored = 'apiserver_resource_objects{group="",resource="configmaps"} '
    before = float(shown.partition(stored)[2].partition("\n")[0])
    assert '\napiserver_longrunning_requests{component="apiserver",group="",resource="configmaps",scope="",' in shown
    await watching.end()
    await api.config_map("b")
    shown = (await api.call("GET", "/metrics")).body.decode()
    assert float(shown.partition(stored)[2].partition("\n")[0]) == before + 1
    assert "apiserver_longrunning_requests" not in shown
