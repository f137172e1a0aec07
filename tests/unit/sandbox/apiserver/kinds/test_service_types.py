"""Services that change their type."""

import pytest

from tests.kit.api import Api, Tree

OUTSIDE: Tree = {"type": "ExternalName", "externalName": "example.com"}
MERGE = "application/merge-patch+json"


@pytest.fixture
async def services(api: Api) -> str:
    return f"/api/v1/namespaces/{await api.namespace()}/services"


def owned(doc: Tree) -> set[str]:
    """The fields of the spec that its manager owns."""
    [entry] = doc["metadata"]["managedFields"]
    return set(entry["fieldsV1"]["f:spec"])


async def test_the_internal_traffic_policy_of_an_external_name_is_hidden(api: Api, services: str) -> None:
    await api.make(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    hidden = (await api.call("PATCH", f"{services}/s", {"spec": OUTSIDE}, content_type=MERGE)).doc
    assert "internalTrafficPolicy" not in hidden["spec"]
    assert "f:internalTrafficPolicy" in owned(hidden)
    assert "f:internalTrafficPolicy" not in owned((await api.put(f"{services}/s", hidden)).doc)


async def test_json_patches_of_hidden_fields_may_state_empty_lists(api: Api, services: str) -> None:
    await api.make(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    await api.merge(f"{services}/s", {"spec": OUTSIDE})
    changes = [
        {"op": "remove", "path": "/spec/internalTrafficPolicy"},
        {"op": "add", "path": "/metadata/finalizers", "value": []},
    ]
    patched = await api.call("PATCH", f"{services}/s", changes, content_type="application/json-patch+json")
    assert (patched.status, patched.message) == (200, "")


async def test_an_address_on_a_name_is_shown_twice_and_not_taken(api: Api, services: str) -> None:
    await api.make(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    await api.make(services, {"metadata": {"name": "other"}, "spec": {"ports": [{"port": 80}]}})
    odd = (
        await api.put(f"{services}/s", {"metadata": {"name": "s"}, "spec": {**OUTSIDE, "clusterIP": "10.0.200.1"}})
    ).doc
    assert odd["spec"]["clusterIPs"] == ["10.0.200.1"]
    taken = await api.post(
        services, {"metadata": {"name": "t"}, "spec": {"clusterIP": "10.0.200.1", "ports": [{"port": 80}]}}
    )
    assert taken.status == 201
