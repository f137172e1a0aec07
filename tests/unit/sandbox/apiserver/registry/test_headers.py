"""Headers of all responses over a connection."""

import asyncio
import uuid

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import User
from tests.kit.api import Api
from tests.kit.widgets import definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLOWS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
LEVELS = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
SCHEMA, LEVEL = "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"
ANYBODY = ("system:authenticated",)


async def uid(api: Api, path: str) -> str:
    found: str = (await api.json("GET", path))["metadata"]["uid"]
    return found


async def asked(api: Api, user: User, path: str, **query: str) -> Response:
    answer = await api.server.api.handle_as(user, Request("GET", path, tuple(query.items())))
    assert isinstance(answer, Response)
    return answer


@pytest.mark.parametrize(
    ("user", "path", "schema", "level"),
    [
        (User("a", groups=("system:masters", *ANYBODY)), "/api/v1/pods", "exempt", "exempt"),
        (User("a", groups=ANYBODY), "/api/v1/pods", "global-default", "global-default"),
        (User("a", groups=ANYBODY), "/healthz", "probes", "exempt"),
        (User("system:kube-scheduler", groups=ANYBODY), "/api/v1/pods", "kube-scheduler", "workload-high"),
        (User("system:node:n", groups=("system:nodes", *ANYBODY)), "/api/v1/pods", "system-nodes", "system"),
        (User("system:node:n", groups=("system:nodes", *ANYBODY)), "/api/v1/nodes", "system-node-high", "node-high"),
        (
            User("system:serviceaccount:x:y", groups=("system:serviceaccounts", *ANYBODY)),
            "/version",
            "service-accounts",
            "workload-low",
        ),
    ],
    ids=["master", "user", "probe", "scheduler", "node", "node's own", "service account"],
)
async def test_flow_schema_and_priority_level_are_in_headers(
    api: Api, user: User, path: str, schema: str, level: str
) -> None:
    headers = (await asked(api, user, path)).headers
    assert headers[SCHEMA] == await uid(api, f"{FLOWS}/{schema}")
    assert headers[LEVEL] == await uid(api, f"{LEVELS}/{level}")


async def test_a_new_flow_schema_applies_at_once(api: Api) -> None:
    user = User("a", groups=ANYBODY)
    before = (await asked(api, user, "/api/v1/pods")).headers[SCHEMA]
    rule = {
        "subjects": [{"kind": "User", "user": {"name": "a"}}],
        "resourceRules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True}],
    }
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 3, "rules": [rule]}
    mine = await api.json("POST", FLOWS, {"metadata": {"name": "mine"}, "spec": spec}, status=201)
    assert (await asked(api, user, "/api/v1/pods")).headers[SCHEMA] == mine["metadata"]["uid"]
    assert (await asked(api, user, "/api/v1/namespaces/x/pods")).headers[SCHEMA] == before
    await api.json("DELETE", f"{FLOWS}/mine")
    assert (await asked(api, user, "/api/v1/pods")).headers[SCHEMA] == before


@pytest.mark.parametrize(
    ("path", "query"),
    [("/api/v1/nodes/n/proxy", {}), ("/api/v1/namespaces/x/pods/p/log", {}), ("/api/v1/pods", {"timeout": "x"})],
)
async def test_exempt_requests_have_no_flow_schema(api: Api, path: str, query: dict[str, str]) -> None:
    assert SCHEMA not in (await asked(api, User("a", groups=("system:masters",)), path, **query)).headers


async def test_an_invalid_token_among_protocols_is_ignored_with_a_certificate(
    api: Api, certificates: Certificates
) -> None:
    pem = certificates.client("jane", ("system:masters",)).certificate
    der = x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.DER)
    headers = {"upgrade": "websocket", "connection": "Upgrade"}
    headers["sec-websocket-protocol"] = "base64url.bearer.authorization.k8s.io.!"
    request = Request("GET", "/version", headers=headers)
    assert [(await api.server.api.handle(request, cert)).status for cert in (der, None)] == [200, 401]


async def test_each_request_has_a_number_of_its_own(api: Api) -> None:
    answers = [await api.server.api.handle(Request("GET", "/version")) for _ in range(2)]
    first, second = (uuid.UUID(answer.headers["audit-id"]) for answer in answers)
    assert first != second
    named = await api.server.api.handle(Request("GET", "/version", headers={"audit-id": "mine"}))
    assert named.headers["audit-id"] == "mine"
    unknown = await api.server.api.handle(Request("GET", "/version", headers={"authorization": "Bearer x"}))
    assert (unknown.status, SCHEMA in unknown.headers) == (401, False)
    assert uuid.UUID(unknown.headers["audit-id"])


@pytest.mark.parametrize(
    ("path", "status"), [("/nope", 404), ("/healthz", 200), ("/api/v1/pods", 403), ("/version", 200)]
)
async def test_texts_and_errors_have_nosniff(api: Api, path: str, status: int) -> None:
    answer = await api.server.api.handle_as(User("a", groups=ANYBODY), Request("GET", path))
    expected = 403 if path == "/nope" else status
    assert (answer.status, answer.headers.get("x-content-type-options") == "nosniff") == (
        expected,
        path != "/version",
    )


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/api/v1/namespaces/none", "/apis", "/apis/apps/v1", "/nope"])
@pytest.mark.parametrize(
    ("agent", "accept", "pretty", "lines"),
    [
        ("curl/8", "", "", True),
        ("Wget/1", "*/*", "", True),
        ("Mozilla/5.0 (X11)", "text/html, */*;q=0.8", "", True),
        ("Mozilla/4.0", "", "", False),
        ("kubectl/v1.36", "application/json;pretty=1", "", True),
        ("kubectl/v1.36", "application/json;pretty=0", "", False),
        ("kubectl/v1.36", "", "true", True),
        ("kubectl/v1.36", "", "yes", False),
        ("curl/8", "", "0", False),
        ("kubectl/v1.36", "", "", False),
    ],
)
async def test_responses_are_pretty_printed_for_browsers(
    api: Api, path: str, agent: str, accept: str, pretty: str, lines: bool
) -> None:
    query = {"pretty": pretty} if pretty else {}
    answer = await api.call("GET", path, headers={"user-agent": agent, "accept": accept}, query=query)
    if "json" in answer.headers["content-type"]:
        assert (answer.body.startswith(b'{\n  "kind"'), answer.body.endswith(b"}\n")) == (lines, not lines)


async def test_a_response_in_no_accepted_media_type_is_pretty_printed(api: Api) -> None:
    answer = await api.call("GET", "/api/v1/namespaces/none", headers={"accept": "image/png, */*;as=Table"})
    assert (answer.status, answer.body[:4]) == (406, b"{\n  ")


@pytest.mark.parametrize("path", ["/", "/version"])
async def test_some_documents_are_always_pretty_printed(api: Api, path: str) -> None:
    answer = await api.call("GET", path, query={"pretty": "false"})
    assert answer.body.startswith(b"{\n  ") and answer.body.endswith(b"\n}")


@pytest.mark.parametrize("path", ["/openapi/v3", "/.well-known/openid-configuration"])
async def test_some_documents_are_never_pretty_printed(api: Api, path: str) -> None:
    answer = await api.call("GET", path, query={"pretty": "true"})
    assert b"\n" not in answer.body.rstrip()


@pytest.mark.parametrize("path", ["/api/v1/watch", "/apis/apps/v1/watch/", "/api/v1/proxy"])
async def test_a_path_that_ends_too_early(api: Api, path: str) -> None:
    answer = await api.server.api.handle(Request("GET", path))
    assert isinstance(answer, Response)
    assert (answer.status, answer.body.decode()) == (
        500,
        f'Internal Server Error: "{path}": failed to create RequestInfo: '
        f"unable to determine kind and namespace from url, {path}\n",
    )


STRUCTURED = "application/{};v=v1beta1;g=config.k8s.io;as={}"


async def test_flags_and_status_of_the_server(api: Api) -> None:
    flags = await api.json("GET", "/flagz", headers={"accept": STRUCTURED.format("json", "Flagz")})
    assert flags["metadata"] == {"name": "apiserver"}
    assert flags["flags"]["authorization-mode"] == "[RBAC]"
    assert flags["flags"]["service-cluster-ip-range"] == "10.0.0.0/16"
    await asyncio.sleep(90)
    status = await api.json("GET", "/statusz", headers={"accept": STRUCTURED.format("json", "Statusz")})
    assert (status["uptimeSeconds"], status["emulationVersion"]) == (90, "1.36")
    packed = await api.call("GET", "/statusz", headers={"accept": STRUCTURED.format("yaml", "Statusz")})
    assert packed.headers["content-type"] == "application/yaml;g=config.k8s.io;v=v1beta1;as=Statusz"
    assert b"\nkind: Statusz\n" in packed.body
    text = await api.call("GET", "/flagz")
    assert text.body.startswith(b"\napiserver flagz\n")
    await api.json("GET", "/statusz", status=406, headers={"accept": "application/json"})
    assert (await api.call("GET", "/flagz/x")).status == 404
    assert {"/flagz", "/statusz"} <= set((await api.json("GET", "/"))["paths"])
    refused = await asked(api, User("a", groups=ANYBODY), "/flagz")
    assert refused.status == 403


async def test_unchanged_discovery_is_an_empty_304(api: Api) -> None:
    headers = {
        "user-agent": "curl/8",
        "accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    }
    found = await api.call("GET", "/apis", headers=headers)
    again = await api.call("GET", "/apis", headers={**headers, "if-none-match": found.headers["etag"]})
    assert (found.status, again.status, again.body) == (200, 304, b"")
    await api.make(DEFINITIONS, definition("gears"))
    await asyncio.sleep(5)
    changed = await api.call("GET", "/apis", headers={**headers, "if-none-match": found.headers["etag"]})
    assert (changed.status, b"gears" in changed.body) == (200, True)
    assert changed.headers["etag"] != found.headers["etag"]


async def test_a_request_that_takes_longer_than_its_client_allows(api: Api) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    path = "/api/v1/configmaps?resourceVersion=999999999&timeout=1s"
    answer = await api.call("GET", path, headers={"accept": "application/yaml"})
    assert (answer.status, loop.time() - start) == (504, 1)
    assert (answer.headers["content-type"], SCHEMA in answer.headers) == ("text/plain; charset=utf-8", False)
    message = "Timeout: request did not complete within the allotted timeout"
    assert answer.doc == {
        "metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {}, "code": 504,
    }  # fmt: skip


async def test_the_timeout_of_a_watch_is_not_read(api: Api) -> None:
    assert (await api.call("GET", "/api/v1/configmaps?watch=1&timeoutSeconds=1&timeout=x")).status == 200
    assert (await api.call("GET", "/api/v1/configmaps?timeout=x")).status == 400
