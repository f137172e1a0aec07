"""Objects that the server itself creates and maintains."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.controllers import api_services
from kcm_cli.sandbox.apiserver.controllers.api_services import API_SERVICES
from kcm_cli.sandbox.apiserver.controllers.api_services import DEFINITIONS as DEFINITIONS_GVR
from kcm_cli.sandbox.apiserver.controllers.service_ranges import SERVICE_CIDRS
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.store import SqliteJournal, Store
from kcm_cli.sandbox.assembly import assemble
from tests.kit.api import EPOCH

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"headers": {"content-type": "application/merge-patch+json"}}


def definition(plural: str, *versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "metadata": {"name": f"{plural}.x.test"},
        "spec": {
            "group": "x.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [
                {"name": name, "served": name != "v0", "storage": name == "v1", "schema": schema} for name in versions
            ],
        },
    }


async def custom_services(api: Any) -> dict[str, Any]:
    await asyncio.sleep(0.1)
    listed = await api.json("GET", SERVICES)
    return {one["metadata"]["name"]: one for one in listed["items"] if one["metadata"]["name"].endswith(".x.test")}


async def test_each_built_in_version_has_an_api_service(api: Any) -> None:
    listed = await api.json("GET", SERVICES)
    groups = (await api.json("GET", "/apis"))["groups"]
    versions = {f"{v['version']}.{group['name']}" for group in groups for v in group["versions"]}
    own = {"v1.apiregistration.k8s.io"}  # of the aggregator, which has none for itself
    assert {one["metadata"]["name"] for one in listed["items"]} == (versions - own) | {"v1."}
    core = await api.json("GET", f"{SERVICES}/v1.")
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert core["status"]["conditions"][0]["reason"] == "Local"
    await api.json("DELETE", f"{SERVICES}/v1.apps")
    await asyncio.sleep(0.1)
    assert (await api.call("GET", f"{SERVICES}/v1.apps")).status == 404


async def test_served_versions_of_definitions_have_api_services(api: Any) -> None:
    await api.json("POST", DEFINITIONS, definition("cats", "v0", "v1"), status=201)
    await api.json("POST", DEFINITIONS, definition("dogs", "v1", "v2"), status=201)
    found = await custom_services(api)
    assert sorted(found) == ["v1.x.test", "v2.x.test"]
    wanted = {"group": "x.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100}
    assert found["v1.x.test"]["spec"] == wanted
    assert found["v1.x.test"]["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "true"}
    assert found["v1.x.test"]["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"
    assert found["v1.x.test"]["status"]["conditions"][0]["type"] == "Available"
    await api.json("DELETE", f"{DEFINITIONS}/dogs.x.test")
    assert sorted(await custom_services(api)) == ["v1.x.test"]
    await api.json("DELETE", f"{DEFINITIONS}/cats.x.test")
    assert not await custom_services(api)


async def test_only_definitions_that_have_changed_are_read_for_their_api_services(
    api: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(5):
        await api.json("POST", DEFINITIONS, definition(f"cats{index}", "v1"), status=201)
    await custom_services(api)
    read: list[str] = []

    def noted(doc: Any) -> list[tuple[str, str]]:
        read.append(doc["metadata"]["name"])
        return served(doc)

    served = api_services._served
    monkeypatch.setattr(api_services, "_served", noted)
    await api.json("PATCH", f"{DEFINITIONS}/cats3.x.test", {"metadata": {"labels": {"a": "b"}}}, **MERGE)
    assert sorted(await custom_services(api)) == ["v1.x.test"]
    assert set(read) == {"cats3.x.test"}


async def test_changes_of_those_api_services_are_reverted(api: Any) -> None:
    await api.json("POST", DEFINITIONS, definition("cats", "v1"), status=201)
    first = (await custom_services(api))["v1.x.test"]
    await api.json("PATCH", f"{SERVICES}/v1.x.test", {"spec": {"versionPriority": 7}}, **MERGE)
    changed = (await custom_services(api))["v1.x.test"]
    assert changed["spec"] == first["spec"]
    assert changed["metadata"]["uid"] == first["metadata"]["uid"]
    await api.json("DELETE", f"{SERVICES}/v1.x.test")
    again = (await custom_services(api))["v1.x.test"]
    assert again["metadata"]["uid"] != first["metadata"]["uid"]


async def test_api_services_of_clients_are_not_changed(api: Any) -> None:
    own = {"group": "x.test", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 6}
    await api.json("POST", SERVICES, {"metadata": {"name": "v1.x.test"}, "spec": own}, status=201)
    await api.json("POST", DEFINITIONS, definition("cats", "v1"), status=201)
    assert (await custom_services(api))["v1.x.test"]["spec"] == own
    await api.json("DELETE", f"{DEFINITIONS}/cats.x.test")
    assert sorted(await custom_services(api)) == ["v1.x.test"]


async def test_the_default_range_of_addresses_is_ready(api: Any) -> None:
    found = await api.json("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "")
    owners = [(one["manager"], one["operation"], one.get("subresource")) for one in found["metadata"]["managedFields"]]
    assert owners == [("kubernetes-service-cidr-controller", "Apply", "status"), ("kube-apiserver", "Update", None)]


@pytest.mark.parametrize(
    ("path", "manager"),
    [
        ("/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1", "kube-apiserver"),
        ("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt", "api-priority-and-fairness-config-producer-v1"),
        ("/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "kube-apiserver"),
    ],
)
async def test_own_objects_have_managed_fields(api: Any, path: str, manager: str) -> None:
    found = await api.json("GET", path)
    assert manager in [one["manager"] for one in found["metadata"]["managedFields"]]


async def test_the_use_of_legacy_tokens_is_tracked_since_the_first_start(api: Any) -> None:
    path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
    assert (await api.json("GET", path))["data"] == {"since": "2030-01-01"}


def own_part(doc: Any) -> Any:
    """The fields of the status that the server owns."""
    (found,) = [one for one in doc["metadata"]["managedFields"] if one.get("subresource") == "status"]
    return found["manager"], found["operation"], found["fieldsV1"]["f:status"]


async def test_the_server_owns_what_it_writes_into_definitions(api: Any) -> None:
    await api.json("POST", DEFINITIONS, definition("cats", "v1"), status=201)
    await asyncio.sleep(0.1)
    manager, operation, fields = own_part(await api.json("GET", f"{DEFINITIONS}/cats.x.test"))
    assert (manager, operation) == ("kube-apiserver", "Update")
    assert fields["f:acceptedNames"].keys() == {"f:kind", "f:listKind", "f:plural", "f:singular"}
    assert {'k:{"type":"Established"}', 'k:{"type":"NamesAccepted"}'} <= fields["f:conditions"].keys()


async def test_the_server_owns_the_usage_of_a_quota(api: Any) -> None:
    base = "/api/v1/namespaces/default/resourcequotas"
    await api.json("POST", base, {"metadata": {"name": "q"}, "spec": {"hard": {"secrets": "5"}}}, status=201)
    counted = {"status": {"hard": {"secrets": "5"}, "used": {"secrets": "0"}}}
    query = {"query": {"fieldManager": "counter"}}
    await api.json("PATCH", f"{base}/q/status", counted, **MERGE, **query)
    await api.json("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}}, status=201)
    found = await api.json("GET", f"{base}/q")
    owners = {one["manager"]: one["fieldsV1"] for one in found["metadata"]["managedFields"] if "subresource" in one}
    assert owners["kube-apiserver"] == {"f:status": {"f:used": {"f:secrets": {}}}}
    assert "f:secrets" not in owners["counter"]["f:status"]["f:used"]


async def test_a_start_creates_missing_objects(tmp_path: Path, certificates: Certificates) -> None:
    async def start(store: Store) -> None:
        server = assemble(store, LoopClock(EPOCH), random.Random(1), certificates, address="127.0.0.1:1")
        await server.bootstrap(bootstrap_objects())

    def opened() -> Store:
        return Store(SqliteJournal(tmp_path))

    store = opened()
    await start(store)
    made = {**definition("cats", "v1"), "kind": "CustomResourceDefinition"}
    made["apiVersion"] = "apiextensions.k8s.io/v1"
    made["metadata"]["uid"] = "u"
    store.create(DEFINITIONS_GVR, "", "cats.x.test", made)
    await asyncio.sleep(0.1)
    assert store.get(API_SERVICES, "", "v1.x.test") is not None
    store.close()
    store = opened()  # as an older server has left it
    store.delete(API_SERVICES, "", "v1.x.test")
    known = store.get(SERVICE_CIDRS, "", "kubernetes")
    assert known is not None
    store.update(SERVICE_CIDRS, "", "kubernetes", known.copy() | {"status": {}})
    store.close()
    store = opened()
    await start(store)
    assert store.get(API_SERVICES, "", "v1.x.test") is not None
    found: Any = store.get(SERVICE_CIDRS, "", "kubernetes")
    assert [one["type"] for one in found.doc["status"]["conditions"]] == ["Ready"]
    store.close()
