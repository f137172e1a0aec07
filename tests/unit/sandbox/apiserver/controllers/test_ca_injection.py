"""CA certificates in webhook configurations and definitions: for routes, and by cert-manager's annotations."""

import asyncio
import base64
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.controllers.ca_injection import CaInjection
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.webhooks.routes import ANNOTATION
from tests.kit.api import Api, Tree, started

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SECRETS = "/api/v1/namespaces/default/secrets"
SERVICE = {"service": {"namespace": "default", "name": "hook", "port": 443}}
PLACEHOLDER = "Cg=="


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    return Certificates.load(None, LoopClock().now())


@pytest.fixture(scope="module")
def ca(certificates: Certificates) -> str:
    return base64.b64encode(certificates.ca.certificate).decode()


@pytest.fixture(scope="module")
def other() -> str:
    """Another CA."""
    return base64.b64encode(Certificates.load(None, LoopClock().now()).ca.certificate).decode()


@pytest.fixture
async def api(certificates: Certificates) -> Api:
    made = await started(certificates)
    CaInjection(made.server.api.core, certificates.ca.certificate)
    return made


def configuration(*clients: Tree, **annotations: str) -> Tree:
    marks = {f"cert-manager.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
    fixed = {"admissionReviewVersions": ["v1"], "sideEffects": "None"}
    webhooks = [{"name": f"w{n}.x.test", **fixed, "clientConfig": client} for n, client in enumerate(clients)]
    return {"metadata": {"name": "c", "annotations": marks}, "webhooks": webhooks}


def definition(client: Tree, **annotations: str) -> Tree:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    spec = {
        "group": "x.test",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing", "singular": "thing"},
        "versions": [version],
        "conversion": {
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
        },
    }
    return {"metadata": {**configuration(**annotations)["metadata"], "name": "things.x.test"}, "spec": spec}


def secret(name: str, ca: str, **annotations: str) -> Tree:
    meta = configuration(**annotations)["metadata"] | {"name": name}
    return {"metadata": meta, "data": {"ca.crt": ca, "tls.crt": "", "tls.key": ""}}


async def later(api: Api, path: str) -> Tree:
    """An object, after the server has had time to change it."""
    await asyncio.sleep(0.1)
    return (await api.get(path)).doc


async def bundles(api: Api, path: str = f"{HOOKS}/c") -> list[Any]:
    doc = await later(api, path)
    return [each["clientConfig"].get("caBundle") for each in doc["webhooks"]]


async def test_webhooks_of_a_routed_service_are_given_the_clusters_ca(api: Api, ca: str, other: str) -> None:
    url = {"url": "https://127.0.0.1:1/"}
    elsewhere = {"service": {"namespace": "default", "name": "elsewhere"}}
    await api.make(
        HOOKS,
        configuration(SERVICE, {**SERVICE, "caBundle": PLACEHOLDER}, {**SERVICE, "caBundle": other}, url, elsewhere),
    )
    assert await bundles(api) == [None, PLACEHOLDER, other, None, None]
    route(api)
    assert await bundles(api) == [ca, ca, other, None, None]


def route(api: Api) -> None:
    api.server.api.routes.add("hook.default", 1)


@pytest.mark.parametrize("path", [HOOKS, MUTATING])
async def test_webhooks_that_are_created_later_get_it_too(api: Api, ca: str, path: str) -> None:
    route(api)
    made = await api.make(path, configuration(SERVICE))
    doc = await later(api, f"{path}/c")
    assert await bundles(api, f"{path}/c") == [ca]
    assert (made["metadata"]["generation"], doc["metadata"]["generation"]) == (1, 2)
    assert {each["manager"] for each in doc["metadata"]["managedFields"]} == {"test", "kcm-sandbox"}
    made["metadata"]["resourceVersion"] = doc["metadata"]["resourceVersion"]
    assert (await api.put(f"{path}/c", made)).status == 200
    assert await bundles(api, f"{path}/c") == [ca], "an update that leaves it out is completed again"


async def test_the_annotation_of_a_service_counts(api: Api, ca: str) -> None:
    await api.make(HOOKS, configuration(SERVICE))
    service = {"metadata": {"name": "hook", "annotations": {ANNOTATION: "1"}}, "spec": {"ports": [{"port": 443}]}}
    await api.make("/api/v1/namespaces/default/services", service)
    assert await bundles(api) == [ca]


async def test_definitions_get_it_too(api: Api, ca: str) -> None:
    route(api)
    await api.make(DEFINITIONS, definition(SERVICE))
    doc = await later(api, f"{DEFINITIONS}/things.x.test")
    assert doc["spec"]["conversion"]["webhook"]["clientConfig"] == {**SERVICE, "caBundle": ca}
    assert (await api.get("/apis/x.test/v1/things")).status == 200


async def test_without_an_issuer_the_clusters_ca_is_injected(api: Api, ca: str, other: str) -> None:
    await api.make(HOOKS, configuration(SERVICE, {**SERVICE, "caBundle": other}, inject_ca_from="default/serving"))
    assert await bundles(api) == [ca, other]


async def test_an_issued_certificate_replaces_the_previous_one(api: Api, other: str) -> None:
    await api.make(HOOKS, configuration(SERVICE, {"url": "https://127.0.0.1:1/"}, inject_ca_from="default/serving"))
    await api.make(SECRETS, secret("tls-of-another", PLACEHOLDER, certificate_name="another"))
    await api.make(SECRETS, secret("tls", other, certificate_name="serving"))
    assert await bundles(api) == [other, other]


async def test_the_secrets_of_a_namespace_are_read_once(api: Api, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        doc = configuration(SERVICE, inject_ca_from=f"default/cert{number}")
        doc["metadata"]["name"] = f"c{number}"
        await api.make(HOOKS, doc)
    await asyncio.sleep(0.1)
    store, scanned = api.server.store, list[str]()
    scan = store.scan
    monkeypatch.setattr(store, "scan", lambda gvr, *args: scanned.append(gvr.plural) or scan(gvr, *args))
    await api.make(SECRETS, secret("s", other, certificate_name="cert3"))
    await asyncio.sleep(0)
    found = [(await later(api, f"{HOOKS}/c{number}"))["webhooks"][0]["clientConfig"] for number in range(5)]
    assert [each["caBundle"] == other for each in found] == [False, False, False, True, False]
    assert scanned.count("secrets") <= 2


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_secret_has_to_allow_its_injection(api: Api, other: str, allowed: bool) -> None:
    await api.make(HOOKS, configuration(SERVICE, inject_ca_from_secret="default/tls"))
    await api.make(SECRETS, secret("tls", other, **({"allow_direct_injection": "true"} if allowed else {})))
    assert await bundles(api) == [other if allowed else None]


async def test_the_api_servers_ca_is_the_clusters(api: Api, ca: str, other: str) -> None:
    await api.make(HOOKS, configuration(SERVICE, {**SERVICE, "caBundle": other}, inject_apiserver_ca="true"))
    assert await bundles(api) == [ca, ca]


@pytest.mark.parametrize("value", ["", "x", "/", "a/", "/b", "default/b/c"])
async def test_annotations_that_name_nothing_inject_nothing(api: Api, value: str) -> None:
    await api.make(HOOKS, configuration(SERVICE, inject_ca_from_secret=value, inject_apiserver_ca=value))
    assert await bundles(api) == [None]


async def test_existing_objects_get_it_at_the_start(certificates: Certificates, ca: str) -> None:
    api = await started(certificates)
    await api.make(HOOKS, configuration(SERVICE, inject_apiserver_ca="true"))
    CaInjection(api.server.api.core, certificates.ca.certificate)
    assert await bundles(api) == [ca]
