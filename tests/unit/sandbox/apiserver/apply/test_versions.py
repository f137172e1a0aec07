"""Server-side apply of one object in several API versions, and after changes of its schema."""

import asyncio
from typing import Any

import pytest

from tests.kit.api import Answer, Api

Tree = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers/h"
APPLY = "application/apply-patch+yaml"
LISTS: Tree = {
    "map": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    "keyed": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
    },
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
}
ATOMS: Tree = {
    "map": {**LISTS["map"], "x-kubernetes-map-type": "atomic"},
    "keyed": {"type": "array", "x-kubernetes-list-type": "atomic", "items": LISTS["keyed"]["items"]},
    "set": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
}
TEXTS = {name: {"type": "string"} for name in "abc"}


async def applied(api: Api, path: str, body: Tree, manager: str = "one", force: bool = False) -> Answer:
    return await api.call(
        "PATCH", f"{path}?fieldManager={manager}&force={str(force).lower()}", body, content_type=APPLY
    )


def schema_of(properties: Tree) -> Tree:
    spec = {"type": "object", "properties": properties}
    return {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}


async def define(api: Api, **versions: Tree) -> None:
    made = [
        {"name": name, "served": True, "storage": name == "v1", "schema": schema_of(properties)}
        for name, properties in versions.items()
    ]
    spec = {"group": "x.test", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"}, "versions": made}
    await api.make(DEFINITIONS, {"metadata": {"name": "things.x.test"}, "spec": spec})
    while (await api.get("/apis/x.test/v1/things")).status != 200:
        await asyncio.sleep(0)


class Thing:
    """A custom object that is applied in any version."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def apply(self, version: str, manager: str = "one", *, force: bool = False, **spec: object) -> Answer:
        body = {"apiVersion": f"x.test/{version}", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}
        return await applied(self.api, f"/apis/x.test/{version}/things/a", body, manager, force)


def owners(answer: Answer) -> Tree:
    return {one["manager"]: one["fieldsV1"].get("f:spec") for one in answer.doc["metadata"].get("managedFields", [])}


def scaler(version: str, **spec: object) -> Tree:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    content = {"maxReplicas": 9, "scaleTargetRef": target, **spec}
    return {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}} | {
        "spec": content
    }


async def test_what_was_applied_in_another_version_is_removed(api: Api) -> None:
    """As recorded of kube-apiserver v1.36: the behavior is removed, which is an annotation in v1."""
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization"}}}
    memory["resource"]["target"]["averageUtilization"] = 5  # type: ignore[index]
    rich = scaler("v2", minReplicas=3, behavior={"scaleDown": {"stabilizationWindowSeconds": 5}}, metrics=[memory])
    await applied(api, AUTOSCALERS.format("v2"), rich)
    assert (await applied(api, AUTOSCALERS.format("v1"), scaler("v1"))).doc["spec"]["minReplicas"] == 1
    assert "behavior" not in (await api.get(AUTOSCALERS.format("v2"))).doc["spec"]


async def test_a_field_that_another_applies_in_another_version_is_no_conflict_when_it_is_given_up(api: Api) -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
    await applied(api, AUTOSCALERS.format("v2"), scaler("v2", metrics=[cpu]))
    shared = scaler("v1", targetCPUUtilizationPercentage=50)
    assert (await applied(api, AUTOSCALERS.format("v1"), shared, "two")).status == 200
    dropped = await applied(api, AUTOSCALERS.format("v1"), scaler("v1"), "two")
    assert dropped.status == 200 and dropped.doc["spec"]["targetCPUUtilizationPercentage"] == 50


async def test_custom_objects_are_compared_as_they_are_in_versions_with_other_fields(api: Api) -> None:
    """Without a conversion webhook, the fields of one version are unknown in the other."""
    thing = Thing(api)
    await define(api, v1={"a": TEXTS["a"], "c": TEXTS["c"]}, v2={"b": TEXTS["b"], "c": TEXTS["c"]})
    await thing.apply("v1", a="1", c="1")
    refused = await thing.apply("v2", "two", b="1")
    assert refused.status == 500
    assert refused.message == "failed to convert new object: .spec.b: field not declared in schema"
    assert (await thing.apply("v2", c="2")).doc["spec"] == {"c": "2"}
    await thing.apply("v1", "three", c="2")
    refused = await thing.apply("v2", b="3", c="2")
    where = "failed to prune fields: failed add back owned items: failed to convert merged object at version x.test/v1"
    assert (refused.status, refused.message) == (500, f"{where}: .spec.b: field not declared in schema")
    updated = await api.merge("/apis/x.test/v2/things/a", {"spec": {"b": "4"}})
    assert updated.status == 200 and owners(updated) == {}


@pytest.mark.parametrize("write", ["update", "apply"])
async def test_fields_that_have_become_atomic_are_owned_as_a_whole(api: Api, write: str) -> None:
    thing = Thing(api)
    await define(api, v1={**LISTS, "n": {"type": "integer"}})
    await thing.apply("v1", map={"a": 1}, keyed=[{"k": "a"}], set=["x"])
    before = owners(await thing.apply("v1", "two", map={"b": 1}, keyed=[{"k": "b"}]))
    assert before["one"]["f:map"] == {"f:a": {}} and before["two"]["f:map"] == {"f:b": {}}
    definition = (await api.get(f"{DEFINITIONS}/things.x.test")).doc
    definition["spec"]["versions"][0]["schema"] = schema_of({**ATOMS, "n": {"type": "integer"}})
    assert (await api.put(f"{DEFINITIONS}/things.x.test", definition)).status == 200
    await asyncio.sleep(1)
    if write == "update":
        after = owners(await api.merge("/apis/x.test/v1/things/a", {"spec": {"n": 1}}))
    else:
        refused = await thing.apply("v1", map={"a": 2}, keyed=[{"k": "a"}])
        assert [one["message"] for one in refused.causes] == ['conflict with "two"'] * 2
        after = owners(await thing.apply("v1", "three", n=1))
    assert after["one"] == {"f:map": {}, "f:keyed": {}, "f:set": {}}
    assert after["two"] == {"f:map": {}, "f:keyed": {}}
