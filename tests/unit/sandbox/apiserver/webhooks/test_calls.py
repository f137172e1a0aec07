"""The targets of webhook calls: routes, endpoints of users, and never a simulated address."""

import asyncio
import base64
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.webhooks.routes import ANNOTATION
from kcm_cli.sandbox.nodes import shape
from tests.kit.api import Api
from tests.kit.hooks import HookServer, Tree
from tests.kit.sockets import watched
from tests.trust.cases import CASES
from tests.trust.record import listening

pytestmark = pytest.mark.real_time

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
NOBODY = (
    'nothing runs behind service "hook", since pods of a sandbox are simulated: route it to your server with the '
    'annotation sandbox.kcm.dev/route: "127.0.0.1:PORT" of the Service, with kcm sandbox --route hook.default=PORT or, '
    'in tests, with sandbox.route("hook.default", PORT)'
)
MADE_UP = (
    "the address is invented by the sandbox and cannot be reached: call a Service with a route, or an address of your "
    "machine"
)


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    """Valid at the real time, since the connections are real."""
    made = Certificates.load(None, LoopClock().now())
    made.serving = made.server("hook.default.svc", "localhost", "127.0.0.1")
    return made


@pytest.fixture
async def hook(certificates: Certificates, tmp_path: Path) -> AsyncIterator[HookServer]:
    def respond(review: Tree) -> Tree:
        return {**review, "response": {"uid": review["request"]["uid"], "allowed": True}}

    async with HookServer(certificates, tmp_path, respond) as made:
        yield made


async def configure(api: Api, client: Tree) -> None:
    webhook = {"name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [RULE]}
    await api.make(HOOKS, {"metadata": {"name": "c"}, "webhooks": [{**webhook, "clientConfig": client}]})


def by_service(hook: HookServer, **more: Any) -> Tree:
    return {"service": {"namespace": "default", "name": "hook", "path": "/p", **more}, "caBundle": hook.bundle}


async def serve(api: Api, annotation: str = "", **spec: Any) -> None:
    meta = {"name": "hook", "annotations": {ANNOTATION: annotation} if annotation else {}}
    await api.make(SERVICES, {"metadata": meta, "spec": {"ports": [{"port": 443, "targetPort": 9443}], **spec}})


async def endpoints(api: Api, port: int, *addresses: Tree) -> None:
    meta = {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}}
    await api.make(
        SLICES, {"metadata": meta, "addressType": "IPv4", "ports": [{"port": port}], "endpoints": list(addresses)}
    )


async def write(api: Api) -> str:
    """The error of a write that calls the webhook, without its prefix; empty if it succeeds."""
    answer = await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "m"}})
    if answer.status == 201:
        return ""
    start = 'Internal error occurred: failed calling webhook "w.example.com": failed to call webhook: Post '
    assert answer.message.startswith(start)
    return answer.message.removeprefix(start)


OTHER = "198.51.100.7"
"""An address that is not the sandbox's."""
BY_SERVICE = '"https://hook.default.svc:443/p?timeout=10s": '


async def test_a_service_of_simulated_pods_is_refused_without_trying(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    await serve(api)
    with watched() as outside:
        assert await write(api) == BY_SERVICE + NOBODY
        pod = {"kind": "Pod", "name": "p", "namespace": "default"}
        await endpoints(api, 9443, {"addresses": [OTHER], "targetRef": pod})
        assert await write(api) == BY_SERVICE + NOBODY, "whatever address a pod may have"
    assert (outside, hook.asked) == ([], [])


async def test_endpoints_that_a_user_wrote_are_called(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    await serve(api)
    await endpoints(api, 9443, {"addresses": ["198.51.100.8"], "conditions": {"ready": False}}, {"addresses": [OTHER]})
    with watched() as outside:
        assert await write(api) == f"{BY_SERVICE}dial tcp {OTHER}:9443: connect: network is unreachable"
    assert outside == [OTHER]


@pytest.mark.parametrize("ports", [None, [], [{}], [{"name": "other", "port": 1}]])
async def test_endpoints_without_the_port_are_not_called(api: Api, hook: HookServer, ports: Any) -> None:
    await configure(api, by_service(hook))
    await serve(api)
    meta = {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}}
    endpoint = {"addresses": [OTHER]}
    await api.make(SLICES, {"metadata": meta, "addressType": "IPv4", "ports": ports, "endpoints": [endpoint]})
    assert await write(api) == BY_SERVICE + NOBODY


async def test_endpoints_at_simulated_addresses_are_not_called(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    await serve(api)
    await endpoints(api, 9443, {"addresses": ["10.244.1.7"]})
    with watched() as outside:
        assert await write(api) == f"{BY_SERVICE}dial tcp 10.244.1.7:9443: {MADE_UP}"
    assert outside == []


@pytest.mark.parametrize("port", [443, 8443])
async def test_a_route_applies_to_each_port_of_its_service(api: Api, hook: HookServer, port: int) -> None:
    await configure(api, by_service(hook, port=port))
    await serve(api, ports=[{"name": "a", "port": 443}, {"name": "b", "port": 8443}])
    api.server.api.routes.add("hook.default", hook.port)
    assert await write(api) == ""


async def test_a_route_needs_no_service(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    assert await write(api) == BY_SERVICE + 'service "hook" not found'
    api.server.api.routes.add("hook.default", f"127.0.0.1:{hook.port}")
    assert await write(api) == ""


async def test_the_annotation_of_a_service_is_a_route(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    await serve(api, annotation=f"127.0.0.1:{hook.port}")
    assert await write(api) == ""
    api.server.api.routes.add("hook.default", 1)
    assert await write(api) == BY_SERVICE + "dial tcp 127.0.0.1:1: connect: connection refused", "that given wins"


async def test_an_annotation_that_cannot_be_read_is_named(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    await serve(api, annotation="here")
    why = 'the annotation sandbox.kcm.dev/route of service "hook" cannot be used: "here" is no address: write PORT or '
    assert await write(api) == BY_SERVICE + why + "HOST:PORT"


async def test_a_routed_service_without_the_port_fails_as_on_a_cluster(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook, port=1))
    await serve(api)
    api.server.api.routes.add("hook.default", hook.port)
    assert (await write(api)).endswith('no service port 1 found for service "hook"')


async def test_the_certificate_has_to_be_the_services(
    api: Api, hook: HookServer, certificates: Certificates, tmp_path: Path
) -> None:
    config = by_service(hook)
    config["service"]["name"] = "other"
    await configure(api, config)
    api.server.api.routes.add("other.default", hook.port)
    assert (await write(api)).endswith("x509: certificate is not valid for other.default.svc")


@pytest.mark.parametrize("name", [f"{which} of three CAs of one name" for which in ("first", "second", "third")])
async def test_each_ca_of_one_name_is_tried(api: Api, tmp_path: Path, name: str) -> None:
    case = CASES[name]()
    with listening(case, tmp_path) as (port, _):
        bundle = base64.b64encode(case.bundle).decode()
        await configure(api, {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle})
        answer = await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"generateName": "m"}})
    assert answer.message.endswith("webhook response was absent")  # {} is what it answers


async def test_a_headless_service_has_no_cluster_ip(api: Api, hook: HookServer) -> None:
    await configure(api, by_service(hook))
    await serve(api, clusterIP="None")
    assert await write(api) == BY_SERVICE + 'cannot route to service with ClusterIP "None"'


@pytest.mark.parametrize(
    "address",
    [
        shape.host_address(0),
        shape.host_address(1000),
        "10.244.0.2",
        "10.255.255.1",
        "100.64.3.1",
        "10.0.0.1",
        "10.0.200.9",
        "192.0.2.1",
        "[::ffff:10.244.0.2]",
        "10.77.0.9",
        "10.99.0.9",
    ],
)
async def test_urls_of_simulated_addresses_are_refused_without_trying(api: Api, address: str) -> None:
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    await api.make(ranges, {"metadata": {"name": "more"}, "spec": {"cidrs": ["10.77.0.0/16"]}})
    await api.make("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"podCIDRs": ["10.99.0.0/24"]}})
    await configure(api, {"url": f"https://{address}:8443/x"})
    with watched() as outside:
        refused = await write(api)
    assert refused.startswith(f'"https://{address}:8443/x?timeout=10s": dial tcp ') and refused.endswith(MADE_UP)
    assert outside == []


@pytest.mark.parametrize("host", ["hook.default.svc", "hook.default.svc.cluster.local", "HOOK.default.svc."])
async def test_names_of_services_in_urls_follow_their_routes(api: Api, hook: HookServer, host: str) -> None:
    await configure(api, {"url": f"https://{host}/x", "caBundle": hook.bundle})
    with watched() as outside:
        assert (await write(api)).endswith(f"dial tcp: lookup {host.lower()}: no such host; {NOBODY}")
    assert outside == []
    api.server.api.routes.add("hook.default", hook.port)
    assert await write(api) == "" or host != "hook.default.svc", "the certificate names that host only"


@pytest.mark.parametrize("host", ["p.hook.default.svc", "10-244-0-2.default.pod.cluster.local", "svc"])
async def test_other_names_of_the_clusters_dns_are_not_looked_up(api: Api, host: str) -> None:
    await configure(api, {"url": f"https://{host}/x"})
    with watched() as outside:
        assert (await write(api)).endswith(f"dial tcp: lookup {host}: no such host")
    assert outside == []


@pytest.mark.parametrize("host", ["a..b", f"{'a' * 64}.example"])
async def test_invalid_dns_names_are_not_resolved(api: Api, hook: HookServer, host: str) -> None:
    await configure(api, hook.config("/p"))
    hook.redirects["/p"] = (307, f"https://{host}/x")
    assert await write(api) == f'"https://{host}/x": dial tcp: lookup {host}: no such host'


def looked_up(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, 1))
    except OSError:
        return False


needs_localhost = pytest.mark.skipif(not looked_up("localhost"), reason="a root without /etc/hosts")


@pytest.mark.parametrize("name", [pytest.param("localhost", marks=needs_localhost), "hook2.default.svc.cluster.local"])
async def test_an_external_name_is_called(api: Api, hook: HookServer, name: str) -> None:
    await configure(api, by_service(hook, port=hook.port))
    await serve(api, type="ExternalName", externalName=name, ports=None)
    api.server.api.routes.add("hook2.default", hook.port)
    assert await write(api) == ""


async def test_the_host_of_a_url_may_have_the_dot_of_the_root(api: Api, hook: HookServer) -> None:
    """Certificates have names without it."""
    await configure(api, {"url": "https://hook.default.svc./p", "caBundle": hook.bundle})
    api.server.api.routes.add("hook.default", hook.port)
    assert await write(api) == ""


async def test_a_conversion_webhook_is_refused_like_the_others(api: Api, hook: HookServer) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")]
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": by_service(hook)}
    spec = {
        "group": "x.test",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": versions,
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.make(definitions, {"metadata": {"name": "things.x.test"}, "spec": spec})
    while (await api.get("/apis/x.test/v1/things")).status != 200:
        await asyncio.sleep(0.01)
    await serve(api)
    await api.make("/apis/x.test/v1/things", {"apiVersion": "x.test/v1", "kind": "Thing", "metadata": {"name": "a"}})
    with watched() as outside:
        answer = await api.get("/apis/x.test/v2/things/a")
    url = "https://hook.default.svc:443/p?timeout=30s"
    assert answer.message == f'conversion webhook for x.test/v1, Kind=Thing failed: Post "{url}": {NOBODY}'
    assert outside == []


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_is_followed(api: Api, hook: HookServer, status: int) -> None:
    await configure(api, hook.config("/p"))
    hook.redirects["/p"] = (status, "/p /?a=b")
    assert await write(api) == ""
    assert hook.paths == ["POST /p?timeout=10s", "POST /p%20/?a=b"]


async def test_redirects_lead_to_other_hosts_and_services_keep_their_route(api: Api, hook: HookServer) -> None:
    await serve(api, annotation=f"127.0.0.1:{hook.port}")
    await configure(api, by_service(hook))
    hook.redirects["/p"] = (307, "q")
    hook.redirects["/q"] = (307, f"https://127.0.0.1:{hook.port}/r")
    assert await write(api) == ""
    assert hook.paths == ["POST /p?timeout=10s", "POST /q", "POST /r"]


async def test_old_redirects_change_the_method_to_get(api: Api, hook: HookServer) -> None:
    await configure(api, hook.config("/p"))
    hook.redirects |= {"/p": (302, "/q"), "/q": (308, "/ftp"), "/ftp": (307, "ftp://a/b")}
    assert await write(api) == '"ftp://a/b": unsupported protocol scheme "ftp"'
    assert hook.paths == ["POST /p?timeout=10s", "GET /q", "GET /ftp"]


async def test_redirects_are_bounded(api: Api, hook: HookServer) -> None:
    await configure(api, hook.config("/p"))
    hook.redirects["/p"] = (307, "/p")
    assert await write(api) == '"/p": stopped after 10 redirects'
    assert len(hook.paths) == 10


async def test_a_redirect_to_a_simulated_address_is_not_followed(api: Api, hook: HookServer) -> None:
    await configure(api, hook.config("/p"))
    hook.redirects["/p"] = (307, "https://10.244.1.7/x")
    with watched() as outside:
        assert await write(api) == f'"https://10.244.1.7/x": dial tcp 10.244.1.7:443: {MADE_UP}'
    assert outside == []
