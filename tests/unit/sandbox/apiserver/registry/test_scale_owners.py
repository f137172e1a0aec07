"""Scales: what they set, the owners of replicas, and errors."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.apply import scale_owners
from tests.kit.api import Api

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}}


def deployment(**spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    filled = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": filled}


def owners(doc: Any) -> list[tuple[str, str, str]]:
    """The owners of the replicas: manager, operation, subresource."""
    found = [one for one in doc["metadata"]["managedFields"] if "f:replicas" in one["fieldsV1"].get("f:spec", {})]
    return sorted((one["manager"], one["operation"], one.get("subresource", "")) for one in found)


async def applied(api: Api, path: str, body: Any, manager: str, status: int = 200, **more: Any) -> Any:
    query = {"fieldManager": manager, **more}
    return await api.json("PATCH", DEPLOYMENTS + path, body, status=status, headers=APPLY, query=query)


async def test_an_apply_to_the_scale_conflicts_with_owners_of_the_replicas(api: Api) -> None:
    await applied(api, "/d", deployment(replicas=1), "alice", status=201)
    refused = await applied(api, "/d/scale", {**SCALE, "spec": {"replicas": 6}}, "sc", status=409)
    assert refused["message"] == 'Apply failed with 1 conflict: conflict with "alice": .spec.replicas'
    await applied(api, "/d/scale", {**SCALE, "spec": {"replicas": 6}}, "sc", force="true")
    doc = await api.json("GET", DEPLOYMENTS + "/d")
    assert doc["spec"]["replicas"] == 6
    assert owners(doc) == [("sc", "Apply", "scale")]
    refused = await applied(api, "/d", deployment(replicas=1), "alice", status=409)
    assert 'conflict with "sc" with subresource "scale": .spec.replicas' in refused["message"]


async def test_an_update_of_the_scale_takes_the_replicas(api: Api) -> None:
    await applied(api, "/d", deployment(replicas=1), "alice", status=201)
    query = {"fieldManager": "hpa"}
    await api.json("PATCH", DEPLOYMENTS + "/d/scale", {"spec": {"replicas": 3}}, headers=MERGE, query=query)
    assert owners(await api.json("GET", DEPLOYMENTS + "/d")) == [("hpa", "Update", "scale")]


@pytest.mark.parametrize(
    ("method", "metadata", "text"),
    [
        (
            "PUT",
            {"uid": "zz"},
            'deployments.apps "d": StorageError: invalid object, Code: 4, Key: /registry/deployments/',
        ),
        ("PATCH", {"uid": "zz"}, 'deployments/scale.apps "d": Precondition failed: UID in precondition: zz'),
        ("PUT", {"resourceVersion": "1"}, "the object has been modified"),
    ],
    ids=["uid", "uid in a patch", "version"],
)
async def test_a_scale_of_another_object_is_a_conflict(
    api: Api, method: str, metadata: dict[str, str], text: str
) -> None:
    await api.json("POST", DEPLOYMENTS, deployment(), status=201)
    body = {**SCALE, "metadata": {"name": "d", **metadata}, "spec": {"replicas": 2}}
    headers = MERGE if method == "PATCH" else {}
    refused = await api.json(method, DEPLOYMENTS + "/d/scale", body, status=409, headers=headers)
    assert text in refused["message"]


def entry(manager: str, fields: Any, **more: Any) -> dict[str, Any]:
    known = {"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": "2030-01-01T00:00:00Z"}
    return {**known, "fieldsType": "FieldsV1", "fieldsV1": fields, **more}


def spec_replicas(version: str) -> tuple[str, ...] | None:
    return ("spec", "replicas") if version == "apps/v1" else None


REPLICAS = {"f:spec": {"f:replicas": {}}}
BOTH = {"f:spec": {"f:replicas": {}, "f:paused": {}}}


@pytest.mark.parametrize(
    ("parent", "expected"),
    [
        pytest.param([], [], id="nobody"),
        pytest.param([entry("a", BOTH)], ["a"], id="an owner"),
        pytest.param([entry("a", {"f:spec": {"f:paused": {}}})], [], id="of something else"),
        pytest.param([entry("a", REPLICAS, apiVersion="old/v1")], [], id="in a version that is unknown"),
    ],
)
def test_owners_of_a_scale(parent: list[Any], expected: list[str]) -> None:
    found = scale_owners.of_scale(parent, spec_replicas)
    assert [one["manager"] for one in found] == expected
    assert all(one["fieldsV1"] == REPLICAS and one["apiVersion"] == "autoscaling/v1" for one in found)


def test_what_a_scale_takes_leaves_the_rest_with_its_owner() -> None:
    mine = entry("hpa", REPLICAS, apiVersion="autoscaling/v1", subresource="scale")
    found = scale_owners.of_parent([entry("a", BOTH)], [mine], "apps/v1", spec_replicas)
    assert {one["manager"]: one["fieldsV1"] for one in found} == {"a": {"f:spec": {"f:paused": {}}}, "hpa": REPLICAS}
    assert all(one["apiVersion"] == "apps/v1" for one in found)
