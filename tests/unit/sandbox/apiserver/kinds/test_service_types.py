"""Services that change their type."""

from collections.abc import Iterator

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.asking import Api, Tree

OUTSIDE: Tree = {"type": "ExternalName", "externalName": "example.com"}
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def api(certificates: Certificates) -> Iterator[Api]:
    made = Api(certificates)
    yield made
    made.close()


@pytest.fixture
def services(api: Api) -> str:
    return f"/api/v1/namespaces/{api.namespace()}/services"


def owned(doc: Tree) -> set[str]:
    """The fields of the spec that its manager owns."""
    [entry] = doc["metadata"]["managedFields"]
    return set(entry["fieldsV1"]["f:spec"])


def test_the_internal_traffic_policy_of_an_external_name_is_hidden(api: Api, services: str) -> None:
    api.make(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    hidden = api.run(api.ask("PATCH", f"{services}/s", {"spec": OUTSIDE}, content_type=MERGE)).doc
    assert "internalTrafficPolicy" not in hidden["spec"]
    assert "f:internalTrafficPolicy" in owned(hidden)
    assert "f:internalTrafficPolicy" not in owned(api.put(f"{services}/s", hidden).doc)


def test_json_patches_of_hidden_fields_may_state_empty_lists(api: Api, services: str) -> None:
    api.make(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    api.merge(f"{services}/s", {"spec": OUTSIDE})
    changes = [
        {"op": "remove", "path": "/spec/internalTrafficPolicy"},
        {"op": "add", "path": "/metadata/finalizers", "value": []},
    ]
    patched = api.run(api.ask("PATCH", f"{services}/s", changes, content_type="application/json-patch+json"))
    assert (patched.status, patched.message) == (200, "")


def test_an_address_on_a_name_is_shown_twice_and_not_taken(api: Api, services: str) -> None:
    api.make(services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    api.make(services, {"metadata": {"name": "other"}, "spec": {"ports": [{"port": 80}]}})
    odd = api.put(f"{services}/s", {"metadata": {"name": "s"}, "spec": {**OUTSIDE, "clusterIP": "10.0.200.1"}}).doc
    assert odd["spec"]["clusterIPs"] == ["10.0.200.1"]
    taken = api.post(
        services, {"metadata": {"name": "t"}, "spec": {"clusterIP": "10.0.200.1", "ports": [{"port": 80}]}}
    )
    assert taken.status == 201
