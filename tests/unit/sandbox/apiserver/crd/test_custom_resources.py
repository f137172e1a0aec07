"""Custom resources on a whole server, from the creation of a definition to its deletion."""

import asyncio
import gc
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.runtime.turns import Part
from kcm_cli.sandbox import snapshots
from kcm_cli.sandbox.apiserver.crd import controller, published
from kcm_cli.sandbox.apiserver.crd.kinds import CustomVersion
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.store import NotKept, Store, Stored
from kcm_cli.sandbox.apiserver.types import Attributes
from tests.kit.api import Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/x.test/v1/namespaces/default/things"
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "default": "red"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            },
        },
    },
}
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}, "text": {"type": "string"}}}


def version(name: str = "v1", spec: Any = SPEC, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": spec, "status": STATUS}}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: Any, plural: str = "things", kind: str = "Thing", **spec: Any) -> dict[str, Any]:
    names = {"plural": plural, "kind": kind}
    body = {"group": "x.test", "scope": "Namespaced", "names": names, "versions": list(versions) or [version()], **spec}
    return {"kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.x.test"}, "spec": body}


def short(plural: str, kind: str, *names: str) -> dict[str, Any]:
    return {"names": {"plural": plural, "kind": kind, "shortNames": list(names)}}


def thing(name: str = "a", api: str = "v1", **content: Any) -> dict[str, Any]:
    return {"apiVersion": f"x.test/{api}", "kind": "Thing", "metadata": {"name": name}, "spec": {"size": 1}, **content}


async def define(api: Api, body: Any = None) -> None:
    await api.json("POST", DEFINITIONS, body or definition(), status=201)
    await asyncio.sleep(0.1)


def conditions(doc: Any) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in doc["status"]["conditions"]}


async def test_objects_of_an_established_definition_can_be_written_and_watched(api: Api) -> None:
    await define(api)
    found = await api.json("GET", f"{DEFINITIONS}/things.x.test")
    assert conditions(found) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    watching = await api.watch(THINGS)
    made = await api.json("POST", THINGS, thing(extra=1), status=201)
    assert made["spec"] == {"size": 1, "color": "red"} and "extra" not in made
    assert made["metadata"]["generation"] == 1
    changed = await api.json("PATCH", f"{THINGS}/a", {"spec": {"size": 2}}, headers=MERGE)
    assert changed["metadata"]["generation"] == 2
    labelled = await api.json("PATCH", f"{THINGS}/a", {"metadata": {"labels": {"l": "1"}}}, headers=MERGE)
    assert labelled["metadata"]["generation"] == 2
    assert [one["metadata"]["name"] for one in (await api.json("GET", THINGS))["items"]] == ["a"]
    await api.json("DELETE", f"{THINGS}/a")
    await asyncio.sleep(0.1)
    assert [kind for kind, _ in watching.seen()] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    await watching.end()


async def test_what_a_schema_forbids_is_refused(api: Api) -> None:
    await define(api)
    refused = await api.json("POST", THINGS, thing(spec={"size": 0}), status=422)
    assert refused["message"] == (
        'Thing.x.test "a" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or '
        "equal to 1"
    )
    strict = await api.json("POST", THINGS, thing(more=1), status=400, query={"fieldValidation": "Strict"})
    assert strict["message"].endswith('strict decoding error: unknown field "more"')
    other = await api.json("POST", THINGS, {**thing(), "kind": "Other"}, status=422)
    assert other["details"]["kind"] == "Other"
    broken = await api.json("POST", THINGS, thing(spec="text"), status=422)
    assert broken["details"]["causes"][0]["field"] == "spec"
    await api.json("POST", THINGS, thing(), status=201)
    put = await api.json("PUT", f"{THINGS}/a", thing(), status=422)
    assert put["details"]["causes"][0]["field"] == "metadata.resourceVersion"


async def test_the_conflict_of_a_definition_tells_which_of_its_names_others_have_now(api: Api) -> None:
    await define(api, definition(plural="ones", kind="One", **short("ones", "One", "a")))
    await define(api, definition(plural="twos", kind="Two", **short("twos", "Two", "a", "b")))

    async def judged() -> Any:
        await asyncio.sleep(0.1)
        found = await api.json("GET", f"{DEFINITIONS}/twos.x.test")
        return next(one["message"] for one in found["status"]["conditions"] if one["type"] == "NamesAccepted")

    assert await judged() == '"a" is already in use'
    await define(api, definition(plural="bees", kind="Bee", **short("bees", "Bee", "b")))
    assert await judged() == '["a" is already in use, "b" is already in use]'
    await api.json("DELETE", f"{DEFINITIONS}/ones.x.test")
    assert await judged() == '"b" is already in use'
    await api.json("DELETE", f"{DEFINITIONS}/bees.x.test")
    assert await judged() == "no conflicts found"
    await api.json("GET", "/apis/x.test/v1/twos")


async def test_a_definition_is_read_when_it_is_written(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        await define(api, definition(plural=f"n{number}s", kind=f"N{number}", **short(f"n{number}s", "Same")))
    read: list[str] = []
    known = controller.definition_of
    monkeypatch.setattr(controller, "definition_of", lambda doc: read.append(doc["metadata"]["name"]) or known(doc))
    await define(api)
    assert set(read) == {"things.x.test"} and len(read) < 5


async def test_the_status_is_apart_where_it_is_a_subresource(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    await define(api, definition(version(subresources={"status": {}, "scale": scale})))
    made = await api.json("POST", THINGS, thing(status={"text": "x"}), status=201)
    assert "status" not in made
    body = {"spec": {"size": 9}, "status": {"text": "y", "replicas": 1}}
    changed = await api.json("PATCH", f"{THINGS}/a/status", body, headers=MERGE)
    assert changed["status"] == {"text": "y", "replicas": 1} and changed["spec"]["size"] == 1
    assert changed["metadata"]["generation"] == 1
    scaled = await api.json("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": 4}}, headers=MERGE)
    assert scaled["spec"] == {"replicas": 4} and scaled["status"] == {"replicas": 1}
    assert (await api.json("GET", f"{THINGS}/a"))["spec"]["size"] == 4


async def test_a_spec_that_scaling_adds_has_its_defaults(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    await define(api, definition(version(subresources={"scale": scale})))
    bare = {key: value for key, value in thing().items() if key != "spec"}
    await api.json("POST", THINGS, bare, status=201)
    await api.json("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": 4}}, headers=MERGE)
    assert (await api.json("GET", f"{THINGS}/a"))["spec"] == {"size": 4, "color": "red"}


async def test_two_versions_show_one_object_each_with_its_own_schema(api: Api) -> None:
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "new": {"type": "string", "default": "n"}},
    }
    old = version("v1alpha1", storage=False, deprecated=True)
    await define(api, definition(version("v1", spec), old))
    answer = await api.call("POST", THINGS.replace("v1", "v1alpha1"), thing(api="v1alpha1"))
    assert answer.headers["warning"] == '299 - "x.test/v1alpha1 Thing is deprecated; use x.test/v1 Thing"'
    found = await api.json("GET", f"{THINGS}/a")
    assert (found["apiVersion"], found["spec"]) == ("x.test/v1", {"size": 1, "new": "n"})
    earlier = await api.json("GET", f"{THINGS.replace('v1', 'v1alpha1')}/a")
    assert (earlier["apiVersion"], earlier["spec"]) == ("x.test/v1alpha1", {"size": 1})
    group = await api.json("GET", "/apis/x.test")
    assert [one["version"] for one in group["versions"]] == ["v1", "v1alpha1"]


async def test_discovery_names_the_status_before_the_scale(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    await define(api, definition(version(subresources={"scale": scale, "status": {}})))
    plain = await api.json("GET", "/apis/x.test/v1")
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    groups = await api.json("GET", "/apis", headers=accept)
    (group,) = (one for one in groups["items"] if one["metadata"]["name"] == "x.test")
    found = group["versions"][0]["resources"][0]["subresources"]
    assert [one["name"] for one in plain["resources"]] == ["things", "things/status", "things/scale"]
    assert [one["subresource"] for one in found] == ["status", "scale"]


async def test_groups_come_by_their_first_version_or_by_name(api: Api) -> None:
    for group, *names in (("x.test", "v1beta1"), ("y.test", "v1"), ("z.test", "v1", "v2alpha1")):
        versions = [version(name, storage=name == names[0]) for name in names]
        body = definition(*versions, group=group)
        await define(api, {**body, "metadata": {"name": f"things.{group}"}})
    plain = await api.json("GET", "/apis")
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    aggregated = await api.json("GET", "/apis", headers=accept)
    assert [one["name"] for one in plain["groups"]][-3:] == ["y.test", "z.test", "x.test"]
    assert [one["metadata"]["name"] for one in aggregated["items"]][-3:] == ["x.test", "y.test", "z.test"]


@pytest.mark.parametrize("applied", [["x"], "x", 1], ids=str)
async def test_entries_of_a_free_form_map_lose_their_owner_with_it(api: Api, applied: Any) -> None:
    free = {"type": "object", "properties": {"any": {"x-kubernetes-preserve-unknown-fields": True}}}
    await define(api, definition(version(spec=free)))
    body = thing(spec={"any": {"a": {"b": 1}}})
    await api.json("POST", THINGS, body, status=201, query={"fieldManager": "one"})
    query = {"fieldManager": "two", "force": "true"}
    made = await api.json("PATCH", f"{THINGS}/a", thing(spec={"any": applied}), headers=APPLY, query=query)
    owned = {one["manager"]: one["fieldsV1"] for one in made["metadata"]["managedFields"]}
    assert owned == {"two": {"f:spec": {"f:any": {}}}, "one": {"f:spec": {}}}


async def test_an_object_is_scaled_through_another_version_than_it_was_written_in(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    parts = {"scale": scale}
    await define(api, definition(version(subresources=parts), version("v1beta1", storage=False, subresources=parts)))
    await api.json("POST", THINGS.replace("v1", "v1beta1"), thing(api="v1beta1"), status=201)
    await api.json("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": 5}}, headers=MERGE)
    assert (await api.json("GET", f"{THINGS.replace('v1', 'v1beta1')}/a"))["spec"]["size"] == 5


async def test_a_scale_without_replicas_has_to_get_some(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.replicas"}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await define(api, definition(version(spec=spec, subresources={"scale": scale})))
    await api.json("POST", THINGS, thing(), status=201)
    labelled = {"metadata": {"labels": {"a": "b"}}}
    refused = await api.json("PATCH", f"{THINGS}/a/scale", labelled, headers=MERGE, status=400)
    assert refused["message"] == 'the spec replicas field ".spec.count" cannot be empty'
    options = {"headers": APPLY, "query": {"fieldManager": "m"}}
    refused = await api.json("PATCH", f"{THINGS}/a/scale", thing(), status=400, **options)
    assert refused["message"] == "invalid object type: x.test/v1, Kind=Thing"
    await api.json("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": 2}}, headers=MERGE)
    await api.json("PATCH", f"{THINGS}/a/scale", labelled, headers=MERGE)
    assert (await api.json("GET", f"{THINGS}/a"))["spec"] == {"size": 1, "count": 2}
    for replicas in (-(1 << 31), None):
        asked = {"metadata": {"name": "a"}, "spec": {"replicas": replicas}}
        refused = await api.json("PUT", f"{THINGS}/a/scale", asked, status=400 if replicas else 200)
        assert not replicas or refused["message"] == 'the spec replicas field ".spec.count" cannot be empty'


async def test_an_object_that_was_there_before_its_scale_may_have_none(api: Api) -> None:
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await define(api, definition(version(spec=spec)))
    await api.json("POST", THINGS, thing(spec={"count": "x"}), status=201)
    scale = {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.replicas"}
    path = f"{DEFINITIONS}/things.x.test"
    changed = definition(version(spec=spec, subresources={"scale": scale}))
    changed["metadata"]["resourceVersion"] = (await api.json("GET", path))["metadata"]["resourceVersion"]
    await api.json("PUT", path, changed)
    await asyncio.sleep(5)
    for method, body in (("GET", None), ("PATCH", {"spec": {"replicas": 2}})):
        refused = await api.json(method, f"{THINGS}/a/scale", body, headers=MERGE, status=500)
        assert refused["message"] == ".spec.count accessor error: x is of the type string, expected int64"


async def test_a_scale_whose_path_leads_through_null_cannot_be_set(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.a.count", "statusReplicasPath": ".status.replicas"}
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await define(api, definition(version(spec=spec, subresources={"scale": scale})))
    await api.json("POST", THINGS, thing(spec={"a": None}), status=201)
    asked = {"spec": {"replicas": 2}}
    refused = await api.json("PATCH", f"{THINGS}/a/scale", asked, headers=MERGE, status=500)
    assert refused["message"] == "value cannot be set because .spec.a is not a map[string]interface{}"


async def test_a_deprecated_version_causes_a_warning_also_if_the_request_is_refused(api: Api) -> None:
    await define(api, definition(version(deprecated=True)))
    answer = await api.call("GET", f"{THINGS}/a/scale")
    assert answer.status == 404
    assert answer.headers["warning"] == '299 - "x.test/v1 Thing is deprecated"'


@pytest.mark.parametrize(
    ("rule", "field", "detail"),
    [
        ({"rule": "self =="}, "default", "rule compile error: compilation failed: ERROR: <input>:1:8: Syntax error"),
        ({"rule": "self.foo"}, "default", "rule compile error: compilation failed: ERROR: <input>:1:5: type 'string'"),
        ({"rule": " "}, "x-kubernetes-validations[0].rule", "Required value: rule is not specified"),
        ({"rule": "true", "messageExpression": "self =="}, "x-kubernetes-validations[0].messageExpression", "ERROR"),
        ({"rule": "false", "messageExpression": "self =="}, "default", 'Invalid value: "a": failed rule: false'),
        ({"rule": "true", "fieldPath": "((("}, "x-kubernetes-validations[0].fieldPath", "must be a valid path"),
    ],
)
async def test_invalid_rules_of_a_schema_with_a_default_are_refused(
    api: Api, rule: Any, field: str, detail: str
) -> None:
    spec = {"type": "string", "default": "a", "x-kubernetes-validations": [rule]}
    refused = await api.json("POST", DEFINITIONS, definition(version(spec=spec)), status=422)
    (cause,) = refused["details"]["causes"]
    assert cause["field"] == f"spec.validation.openAPIV3Schema.properties[spec].{field}"
    assert detail in cause["message"]


async def test_the_configuration_of_an_apply_has_the_numbers_of_yaml(api: Api) -> None:
    items = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "set": items}}
    spec["x-kubernetes-validations"] = [{"rule": "self.size > 0", "message": "size"}]
    await define(api, definition(version(spec=spec)))
    body = thing(spec={"size": 1.0, "set": [2.0]})
    options = {"headers": APPLY, "query": {"fieldManager": "m"}}
    made = await api.json("PATCH", f"{THINGS}/a", body, status=201, **options)
    assert repr(made["spec"]) == "{'size': 1, 'set': [2]}"
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"] == {"f:size": {}, "f:set": {"v:2": {}}}
    body = thing("b", spec={"size": 1, "set": [2.0]})
    body["metadata"]["generation"] = 3.0
    made = await api.json("POST", THINGS, body, status=201)
    (entry,) = made["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"]["f:set"] == {".": {}, "v:2": {}}


async def test_types_that_unmarshal_themselves_end_decoding(api: Api) -> None:
    async def refusal(api: Api, code: int, **spec: Any) -> str:
        refused = await api.json("POST", DEFINITIONS, definition(version(spec=spec)), status=code)
        return str(refused["message"].partition("CustomResourceDefinition: ")[2] or refused["message"])

    start = "json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema"
    start += ".openAPIV3Schema.properties"
    wrong = {"type": 1, "items": {"x-kubernetes-validations": [{"message": 5}]}}
    assert await refusal(api, 400, **wrong) == (f"{start}.items.x-kubernetes-validations.message of type string")
    assert await refusal(api, 400, items=[1]) == f"{start}.items of type v1.JSONSchemaProps"
    assert await refusal(api, 400, dependencies={"a": [1]}) == f"{start}.dependencies of type string"
    for value in (5, "x", []):
        assert await refusal(api, 400, additionalProperties=value) == "boolean or JSON schema expected"
    for value in (5, "x", True, []):
        text = await refusal(api, 422, type="array", items=value)
        assert text.endswith("schema.properties[spec].items: Required value: must be specified".partition(".")[2])
    items = {"type": "object", "unknown": 1}
    made = await api.call("POST", DEFINITIONS, definition(version(spec={"type": "array", "items": items})))
    assert made.status == 201 and "warning" not in made.headers


async def test_a_watch_tells_of_objects_that_go_with_their_definition(api: Api) -> None:
    await define(api, definition(version(), version("v1beta1", storage=False)))
    watching = await api.watch(THINGS)
    await api.json("POST", THINGS, thing(), status=201)
    await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
    await asyncio.sleep(0.1)
    assert watching.seen() == [("ADDED", "a"), ("DELETED", "a")]
    await watching.end()


async def test_watches_end_a_second_after_their_definition_changes(api: Api) -> None:
    await define(api)
    await define(api, definition(plural="others", kind="Other"))
    watching, other = await api.watch(THINGS), await api.watch(THINGS.replace("things", "others"))
    path = f"{DEFINITIONS}/things.x.test"
    await api.json("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
    await asyncio.sleep(2)
    assert not watching.task.done()
    await api.json("PATCH", path, {"spec": {"versions": [version(), version("v2", storage=False)]}}, headers=MERGE)
    later = await api.watch(THINGS, seconds=0.1)
    await api.json("POST", THINGS, thing(), status=201)
    await asyncio.sleep(2)
    assert watching.task.done() and watching.seen() == [("ADDED", "a")]
    await api.json("DELETE", path)
    await asyncio.sleep(0.1)
    assert not later.task.done()
    await asyncio.sleep(2)
    assert later.task.done() and later.seen() == [("ADDED", "a"), ("DELETED", "a")]
    assert not other.task.done()
    await other.end()


PATCHES = [
    ("ApplyConfiguration", "applyConfiguration", "Object{spec: Object.spec{size: object.spec.size + 1}}"),
    (
        "JSONPatch",
        "jsonPatch",
        "[JSONPatch{op: 'replace', path: '/spec/size', value: 2}, JSONPatch{op: 'add', path: '/spec/odd', value: 1}]",
    ),
]


@pytest.mark.parametrize(("kind", "field", "expression"), PATCHES, ids=["apply", "JSON patch with an unknown field"])
async def test_policies_see_and_change_objects_of_kinds_with_several_versions(
    api: Api, kind: str, field: str, expression: str
) -> None:
    await define(api, definition(version(), version("v1beta1", storage=False)))
    rule = {"apiGroups": ["x.test"], "apiVersions": ["*"], "resources": ["things"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": [{"patchType": kind, field: {"expression": expression}}],
        "reinvocationPolicy": "Never",
    }
    group = "/apis/admissionregistration.k8s.io/v1"
    name = {"metadata": {"name": "p"}}
    await api.json("POST", f"{group}/mutatingadmissionpolicies", {**name, "spec": spec}, status=201)
    binding = {**name, "spec": {"policyName": "p"}}
    await api.json("POST", f"{group}/mutatingadmissionpolicybindings", binding, status=201)
    await asyncio.sleep(1)
    made = await api.json("POST", THINGS, thing(), status=201)
    assert made["spec"] == {"size": 2, "color": "red"}


async def test_a_new_default_shows_on_what_is_there_already(api: Api) -> None:
    await define(api)
    made = await api.json("POST", THINGS, thing(), status=201)
    patch = [
        {
            "op": "add",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/late",
            "value": {"type": "string", "default": "l"},
        }
    ]
    headers = {"content-type": "application/json-patch+json"}
    await api.json("PATCH", f"{DEFINITIONS}/things.x.test", patch, headers=headers)
    await asyncio.sleep(0.1)
    found = await api.json("GET", f"{THINGS}/a")
    assert found["spec"]["late"] == "l"
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert (await api.json("GET", THINGS))["items"][0]["spec"]["late"] == "l"


async def test_names_belong_to_the_first_definition_and_are_released(api: Api) -> None:
    await define(api)
    await define(api, definition(plural="rivals"))
    found = await api.json("GET", f"{DEFINITIONS}/rivals.x.test")
    assert conditions(found)["NamesAccepted"] == ("False", "ListKindConflict")
    assert conditions(found)["Established"] == ("False", "NotAccepted")
    assert (await api.call("GET", "/apis/x.test/v1/rivals")).body == b"404 page not found\n"
    await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
    await asyncio.sleep(0.1)
    found = await api.json("GET", f"{DEFINITIONS}/rivals.x.test")
    assert conditions(found)["Established"] == ("True", "InitialNamesAccepted")
    assert (await api.json("GET", "/apis/x.test/v1/rivals"))["kind"] == "ThingList"


async def test_a_definition_is_deleted_after_its_objects(api: Api) -> None:
    for _ in range(2):  # the second definition has the name of the first one
        await define(api)
        await api.json("POST", THINGS, thing("free"), status=201)
        held = thing("held")
        held["metadata"]["finalizers"] = ["x.test/f"]
        await api.json("POST", THINGS, held, status=201)
        gone = await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
        assert gone["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        assert conditions(gone)["Terminating"] == ("True", "InstanceDeletionPending")
        await asyncio.sleep(0.1)
        assert [one["metadata"]["name"] for one in (await api.json("GET", THINGS))["items"]] == ["held"]
        refused = await api.json("POST", THINGS, thing("late"), status=403)
        assert refused["message"].endswith("create not allowed while custom resource definition is terminating")
        await api.json("PATCH", f"{THINGS}/held", {"metadata": {"finalizers": None}}, headers=MERGE)
        await asyncio.sleep(0.1)
        assert (await api.call("GET", f"{DEFINITIONS}/things.x.test")).status == 404
        assert (await api.call("GET", THINGS)).body == b"404 page not found\n"


async def test_a_definition_that_a_snapshot_restores_is_deleted_after_its_objects_again(api: Api) -> None:
    await define(api)
    held = thing("held")
    held["metadata"]["finalizers"] = ["x.test/f"]
    await api.json("POST", THINGS, held, status=201)
    store = api.server.api.core.store
    before = snapshots.take(store)
    for _ in range(2):
        await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
        await asyncio.sleep(0.1)
        assert "deletionTimestamp" in (await api.json("GET", f"{THINGS}/held"))["metadata"]
        snapshots.restore(store, before)
        await asyncio.sleep(0.1)
        assert "deletionTimestamp" not in (await api.json("GET", f"{THINGS}/held"))["metadata"]


async def test_a_definition_whose_status_was_not_kept_is_judged_again_with_the_next_one(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise NotKept("the disk is full")

    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))
    with monkeypatch.context() as patched:
        patched.setattr(api.server.api.core.own, "update_status", full)
        await define(api)
    assert list(map(str, raised)) == ["the disk is full"]
    await define(api, definition(plural="others", kind="Other"))
    found = await api.json("GET", f"{DEFINITIONS}/things.x.test")
    assert conditions(found)["Established"] == ("True", "InitialNamesAccepted")


async def test_a_request_that_outlives_the_definition_creates_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await define(api)
    admission = api.server.api.core.admission
    validate, waits, goes_on = admission.validate, asyncio.Event(), asyncio.Event()

    async def slow(attrs: Attributes) -> None:
        await validate(attrs)
        if attrs.resource.custom:
            waits.set()
            await goes_on.wait()

    monkeypatch.setattr(admission, "validate", slow)
    late = asyncio.create_task(api.call("POST", THINGS, thing("late")))
    await waits.wait()
    await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
    await asyncio.sleep(0.1)
    goes_on.set()
    assert (await late).status == 404
    await define(api)
    assert (await api.json("GET", THINGS))["items"] == []


class AlwaysOver(Part):
    """A part of a turn that has time for nothing more."""

    def is_over(self) -> bool:
        return True


async def test_objects_of_a_deleted_definition_are_deleted_in_turns(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await define(api)
    for index in range(6):
        held = thing(f"o{index}")
        if index % 2:
            held["metadata"]["finalizers"] = ["x.test/f"]
        await api.json("POST", THINGS, held, status=201)
    monkeypatch.setattr(controller, "Part", AlwaysOver)
    await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    left = (await api.json("GET", THINGS))["items"]
    assert len(left) > 3
    await asyncio.sleep(0.1)
    left = (await api.json("GET", THINGS))["items"]
    assert [one["metadata"]["name"] for one in left] == ["o1", "o3", "o5"]
    assert all("deletionTimestamp" in one["metadata"] for one in left)
    for index in (1, 3, 5):
        await api.json("PATCH", f"{THINGS}/o{index}", {"metadata": {"finalizers": None}}, headers=MERGE)
    await asyncio.sleep(0.1)
    assert (await api.call("GET", f"{DEFINITIONS}/things.x.test")).status == 404


async def test_the_turn_of_a_deletion_begins_when_its_objects_are_known(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To list very many takes longer than a turn, of which one object was deleted then."""
    happened: list[str] = []
    scan = Store.scan

    class Noted(Part):
        def __init__(self, seconds: float) -> None:
            happened.append("part")
            super().__init__(seconds)

    def listed(store: Store, gvr: GVR, *where: Any, **more: Any) -> Iterator[Stored]:
        yield from scan(store, gvr, *where, **more)
        if gvr.group == "x.test":
            happened.append("listed")

    await define(api)
    await api.json("POST", THINGS, thing("a"), status=201)
    monkeypatch.setattr(controller, "Part", Noted)
    monkeypatch.setattr(Store, "scan", listed)
    await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
    await asyncio.sleep(0.1)
    assert happened[:2] == ["listed", "part"]


def living() -> list[CustomVersion]:
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, CustomVersion)]


async def test_nothing_is_kept_of_deleted_definitions_but_what_a_request_uses(api: Api) -> None:
    others = living()
    for _ in range(3):
        await define(api)
        await api.json("POST", THINGS, thing(), status=201)
        watching = await api.watch(THINGS, 60.0)
        await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
        await asyncio.sleep(0.1)
        assert watching.seen()[-1] == ("DELETED", "a")
        await watching.end()
    del watching
    assert not [one for one in living() if one not in others]


async def test_server_side_apply_merges_lists_by_their_keys(api: Api) -> None:
    await define(api)

    async def apply(manager: str, ports: Any, **query: Any) -> Any:
        body = thing(spec={"size": 1, "ports": ports})
        query = {"fieldManager": manager, **query}
        answer = await api.call("PATCH", f"{THINGS}/a", body, headers=APPLY, query=query)
        return answer.status, answer.body

    assert (await apply("one", [{"name": "a", "port": 1}]))[0] == 201
    assert (await apply("two", [{"name": "b", "port": 2}]))[0] == 200
    found = await api.json("GET", f"{THINGS}/a")
    assert found["spec"]["ports"] == [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
    status, body = await apply("two", [{"name": "a", "port": 9}])
    assert status == 409 and b'.spec.ports[name=\\"a\\"].port' in body
    assert (await apply("one", []))[0] == 200
    assert (await api.json("GET", f"{THINGS}/a"))["spec"]["ports"] == [{"name": "b", "port": 2}]


async def test_a_change_in_one_version_takes_fields_from_managers_of_another(api: Api) -> None:
    await define(api, definition(version("v1"), version("v1beta1", storage=False)))
    beta = THINGS.replace("v1", "v1beta1")
    body, query = thing(api="v1beta1", spec={"size": 1, "color": "blue"}), {"fieldManager": "one"}
    await api.json("PATCH", f"{beta}/a", body, headers=APPLY, query=query, status=201)
    query = {"fieldManager": "two"}
    await api.json("PATCH", f"{THINGS}/a", {"spec": {"color": "green"}}, headers=MERGE, query=query)
    managed = (await api.json("GET", f"{THINGS}/a"))["metadata"]["managedFields"]
    owned = {(one["manager"], one["apiVersion"]): one["fieldsV1"] for one in managed}
    assert owned == {
        ("one", "x.test/v1beta1"): {"f:spec": {"f:size": {}}},
        ("two", "x.test/v1"): {"f:spec": {"f:color": {}}},
    }


async def test_an_apply_conflicts_with_managers_of_another_version(api: Api) -> None:
    await define(api, definition(version("v1"), version("v1beta1", storage=False)))
    beta = THINGS.replace("v1", "v1beta1")
    body, query = thing(api="v1beta1", spec={"size": 1, "color": "blue"}), {"fieldManager": "one"}
    await api.json("PATCH", f"{beta}/a", body, headers=APPLY, query=query, status=201)
    body, query = thing(spec={"size": 1, "color": "green"}), {"fieldManager": "two"}
    refused = await api.json("PATCH", f"{THINGS}/a", body, headers=APPLY, query=query, status=409)
    assert refused["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".spec.color"}
    ]
    forced = await api.json("PATCH", f"{THINGS}/a", body, headers=APPLY, query={**query, "force": "true"})
    managed = {one["manager"]: one["fieldsV1"] for one in forced["metadata"]["managedFields"]}
    assert managed["one"] == {"f:spec": {"f:size": {}}}


async def test_replicas_of_a_spec_that_is_not_an_object(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    await define(api, definition(version(subresources={"scale": scale})))
    refused = await api.json("POST", THINGS, {**thing(), "spec": -1}, status=422)
    assert ".spec.size accessor error: -1 is of the type int64" in refused["message"]
    for value, shown in (({"a": [True]}, "map[]"), ([None], "[<nil>]"), (1.5, "1.5")):
        refused = await api.json("POST", THINGS, {**thing(), "spec": {"size": value}}, status=422)
        assert f".spec.size accessor error: {shown} is of the type" in refused["message"]


async def test_rules_validate_objects_and_changes(api: Api) -> None:
    rules = [
        {
            "rule": "self.size < 10",
            "messageExpression": "self.size > 50 ? 'far too big' : 'too big'",
            "fieldPath": ".size",
        },
        {"rule": "self.size >= oldSelf.size", "message": "must not shrink", "reason": "FieldValueForbidden"},
    ]
    bounded = {**SPEC, "x-kubernetes-validations": rules}
    bounded["properties"] = {**SPEC["properties"], "size": {"type": "integer", "minimum": 1}}  # type: ignore[dict-item]
    await define(api, definition(version(spec=bounded)))
    refused = await api.json("POST", THINGS, thing(spec={"size": 20}), status=422)
    assert refused["details"]["causes"][0] == {
        "field": "spec.size",
        "message": "Invalid value: too big",
        "reason": "FieldValueInvalid",
    }
    unchecked = await api.json("POST", THINGS, thing(spec={"size": "x"}), status=422)
    assert unchecked["details"]["causes"][1]["message"].startswith("Invalid value: null: some validation rules")
    await api.json("POST", THINGS, thing(spec={"size": 5}), status=201)
    refused = await api.json("PATCH", f"{THINGS}/a", {"spec": {"size": 4}}, headers=MERGE, status=422)
    assert refused["details"]["causes"][0]["message"] == "Forbidden: must not shrink"


def _without(path: str) -> dict[str, Any]:
    body = definition()
    *parents, last = path.split(".")
    where: Any = body
    for name in parents:
        where = where[int(name)] if isinstance(where, list) else where[name]
    del where[last]
    return body


def _rooted(**more: Any) -> dict[str, Any]:
    body = definition()
    body["spec"]["versions"][0]["schema"]["openAPIV3Schema"].update(more)
    return body


def _ruled(*rules: Any) -> dict[str, Any]:
    return definition(version(spec={**SPEC, "x-kubernetes-validations": list(rules)}))


_SCHEMA = "spec.validation.openAPIV3Schema"
_REFUSED = [
    (definition(scope="X"), 'spec.scope: Unsupported value: "X"'),
    (_without("spec.versions.0.schema"), "spec.versions[0].schema.openAPIV3Schema: Required value"),
    (
        definition(version(spec={"type": "array"})),
        f"{_SCHEMA}.properties[spec].items: Required value: must be specified",
    ),
    (
        definition(version(spec={"type": "string", "pattern": "("})),
        "must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
    ),
    (
        _rooted(anyOf=[{"properties": {"a": {"minimum": 1}}}]),
        f"{_SCHEMA}.properties[a]: Required value: because it is defined in {_SCHEMA}.anyOf[0].properties[a]",
    ),
    (
        definition(version(spec={"type": "integer", "default": "x"})),
        'properties[spec].default: Invalid value: "string":  in body must be of type integer: "string"',
    ),
    (
        definition(version(spec={"type": "object", "default": {"x": 1}})),
        'properties[spec].default: Invalid value: {"x":1}: must not have unknown fields',
    ),
    (
        definition(version(spec={"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"})),
        "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
    ),
    (
        definition(version(spec={"type": "object", "x-kubernetes-validations": [{"rule": ""}]})),
        "x-kubernetes-validations[0].rule: Required value: rule is not specified",
    ),
    (
        _ruled({"rule": "self.sice < 3"}),
        "compilation failed: ERROR: <input>:1:5: undefined field 'sice'\n | self.sice < 3\n | ....^",
    ),
    (_ruled({"rule": "self.size"}), "cel expression must evaluate to a bool"),
    (_ruled({"rule": "int('x') == 1"}), "program instantiation failed: type conversion error from 'string' to 'int'"),
    (
        _ruled({"rule": "true", "messageExpression": "string(int('x'))"}),
        "messageExpression instantiation failed: type conversion error from 'string' to 'int'",
    ),
    (_ruled({"rule": "self.size <"}), "compilation failed: ERROR: <input>:1:12: Syntax error"),
    (
        _ruled({"rule": "true", "messageExpression": "self.size"}),
        "x-kubernetes-validations[0].messageExpression: Invalid value: ",
    ),
    (
        _ruled({"rule": "self.ports.all(a, self.ports.all(b, self.ports.all(c, a.port <= c.port)))"}),
        "rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule",
    ),
    (
        _ruled({"rule": "true", "messageExpression": "'size ' + string(self.size)"}),
        "messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of more than 100x",
    ),
    (
        _ruled({"rule": "self.size < 3", "optionalOldSelf": True}),
        "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",
    ),
    (
        _ruled({"rule": "oldSelf.size < 3", "optionalOldSelf": True}),
        "optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",  # as it has no type
    ),
    (
        definition(version(selectableFields=[{"jsonPath": ".spec"}])),
        'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string',
    ),
    (
        definition(version(subresources={"scale": {"specReplicasPath": ".a", "statusReplicasPath": ".status.b"}})),
        'spec.subresources.scale.specReplicasPath: Invalid value: ".a": should be a json path under .spec',
    ),
]


async def test_definitions_that_are_refused(api: Api) -> None:
    unique = _ruled({"rule": "self.ports.all(a, self.ports.exists_one(b, b.port == a.port))"})
    spec = unique["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = {**spec["properties"], "ports": {**spec["properties"]["ports"], "maxItems": 100}}
    await api.json("POST", DEFINITIONS, unique, status=201, query={"dryRun": "All"})
    for body, expected in _REFUSED:
        refused = await api.json("POST", DEFINITIONS, body, status=422)
        assert expected in refused["message"]


async def test_nested_copies_are_bounded(api: Api) -> None:
    await define(api, definition(version(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True})))
    deep: Any = {}
    for _ in range(90):
        deep = {"a": deep}
    await api.json("POST", THINGS, thing(spec={"x": deep}), status=201)
    headers = {"content-type": "application/json-patch+json"}
    bottom, statuses = "/spec/x" + "/a" * 90, []
    for _ in range(6):
        operations = [
            {"op": "copy", "from": "/spec/x", "path": "/spec/copy"},
            {"op": "move", "from": "/spec/copy", "path": f"{bottom}/a"},
        ]
        statuses.append((await api.call("PATCH", f"{THINGS}/a", operations, headers=headers)).status)
        bottom += bottom.removeprefix("/spec/x") + "/a"
    assert statuses == [200, 422, 422, 422, 422, 422]
    assert (await api.json("GET", f"{THINGS}/a"))["spec"]["x"]["a"]


SCALE = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}}


async def test_a_scale_shares_the_owners_of_its_custom_object(api: Api) -> None:
    await define(api, definition(version(subresources=SCALE)))
    await api.json("POST", THINGS, thing(), status=201, query={"fieldManager": "one"})
    scale = {"spec": {"replicas": 3}}
    await api.json("PATCH", f"{THINGS}/a/scale", scale, headers=MERGE, query={"fieldManager": "two"})
    owners = (await api.json("GET", f"{THINGS}/a"))["metadata"]["managedFields"]
    assert {one["manager"]: (one["fieldsV1"], one.get("subresource")) for one in owners} == {
        "one": ({"f:spec": {".": {}, "f:color": {}}}, None),
        "two": ({"f:spec": {"f:size": {}}}, "scale"),
    }
    refused = await api.json("PATCH", f"{THINGS}/a/scale", {"spec": {"replicas": -3}}, headers=MERGE, status=422)
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["spec.size", ".spec.size"]


@pytest.mark.parametrize(
    ("replicas", "force", "status", "message"),
    [
        (4, False, 409, 'Apply failed with 1 conflict: conflict with "two" with subresource "scale" using '),
        (4, True, 500, "failed to convert new object (/a; autoscaling/v1, Kind=Scale)"),
        (3, False, 200, ""),
    ],
)
async def test_an_applied_scale_cannot_change_a_custom_object(
    api: Api, replicas: int, force: bool, status: int, message: str
) -> None:
    await define(api, definition(version(subresources=SCALE)))
    await api.json("POST", THINGS, thing(), status=201)
    patch = {"spec": {"replicas": 3}}
    await api.json("PATCH", f"{THINGS}/a/scale", patch, headers=MERGE, query={"fieldManager": "two"})
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": replicas}}
    query = {"fieldManager": "three", "force": str(force).lower()}
    answer = await api.json("PATCH", f"{THINGS}/a/scale", body, headers=APPLY, query=query, status=status)
    assert answer.get("message", "").startswith(message)


async def test_patches_whose_result_is_invalid(api: Api) -> None:
    await define(api)
    await api.json("POST", THINGS, thing(), status=201)
    refused = await api.json("PATCH", f"{THINGS}/a", {"metadata": None}, headers=MERGE, status=400)
    assert refused["message"].endswith("was undeterminable: name must be provided")
    body = {"apiVersion": "x.test/v7", "metadata": {"name": {}}}
    refused = await api.json("PATCH", f"{THINGS}/a", body, headers=MERGE, status=422)
    assert "cannot unmarshal object into Go struct field ObjectMeta.name of type string" in refused["message"]
    refused = await api.json("PATCH", f"{THINGS}/a", {"apiVersion": "x.test/v7"}, headers=MERGE, status=422)
    assert 'apiVersion: Invalid value: "x.test/v7": must be x.test/v1' in refused["message"]
    other = {"apiVersion": "y/v1", "kind": "Other"}
    refused = await api.json("PATCH", f"{THINGS}/a", other, headers=MERGE, status=422)
    assert [cause["field"] for cause in refused["details"]["causes"]] == ["kind", "apiVersion"]
    none = await api.json("PATCH", f"{THINGS}/a", {"apiVersion": None}, headers=MERGE, status=500)
    assert none["message"].endswith("Object 'apiVersion' is missing in 'object has no apiVersion field'")
    for body, why in (
        ({"kind": None}, "Object 'Kind' is missing in '{"),
        ({"kind": 3}, "json: cannot unmarshal number into Go struct field .kind of type string"),
        ({"apiVersion": "a/b/c"}, "unexpected GroupVersion string: a/b/c"),
    ):
        refused = await api.json("PATCH", f"{THINGS}/a", body, headers=MERGE, status=422)
        assert why in refused["message"]


async def test_objects_are_read_as_the_version_in_which_they_are_stored(api: Api) -> None:
    def of(name: str, field: str, stored: str) -> dict[str, Any]:
        fields = {field: {"type": "string"}, "n": {"type": "string", "default": name}}
        return version(name, {"type": "object", "properties": fields}, storage=name == stored)

    other = THINGS.replace("/v1/", "/v2/")
    await define(api, definition(of("v1", "a", "v1"), of("v2", "b", "v1")))
    await api.json("POST", THINGS, thing(spec={"a": "x"}), status=201)
    await api.json("POST", other, thing("b", api="v2", spec={"b": "x"}), status=201)
    assert (await api.json("GET", f"{other}/b"))["spec"] == {"n": "v2"}
    switched = {"spec": {"versions": [of("v1", "a", "v2"), of("v2", "b", "v2")]}}
    await api.json("PATCH", f"{DEFINITIONS}/things.x.test", switched, headers=MERGE)
    await asyncio.sleep(0.1)
    assert (await api.json("GET", f"{THINGS}/a"))["spec"] == {"a": "x", "n": "v1"}
    assert (await api.json("GET", f"{other}/a"))["spec"] == {"n": "v1"}
    await api.json("PUT", f"{THINGS}/a", await api.json("GET", f"{THINGS}/a"))
    assert (await api.json("GET", f"{THINGS}/a"))["spec"] == {"n": "v1"}


async def test_an_object_in_a_version_that_its_definition_has_lost_cannot_be_read(api: Api) -> None:
    path = "/apis/x.test/v2/namespaces/default/things"
    await define(api, definition(version(), version("v2", storage=False)))
    await api.json("POST", THINGS, thing(), status=201)
    await api.json("POST", THINGS, thing("b"), status=201)
    name = f"{DEFINITIONS}/things.x.test"
    switched = {"spec": {"versions": [version(storage=False), version("v2")]}}
    await api.json("PATCH", name, switched, headers=MERGE)
    await asyncio.sleep(0.1)
    before = await api.json("GET", f"{path}/b")
    after = await api.json("PUT", f"{path}/b", before)  # stores it again, though it is equal
    assert before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"]
    assert len((await api.json("GET", path))["items"]) == 2
    await api.json("PATCH", f"{name}/status", {"status": {"storedVersions": ["v2"]}}, headers=MERGE)
    await api.json("PATCH", name, {"spec": {"versions": [version("v2")]}}, headers=MERGE)
    await asyncio.sleep(0.1)
    why = "request to convert CR from an invalid group/version: x.test/v1"
    for method, at in (("GET", f"{path}/a"), ("DELETE", f"{path}/a"), ("DELETE", path)):
        assert (await api.json(method, at, status=500))["message"] == why
    assert (await api.json("GET", f"{path}/b"))["metadata"]["name"] == "b"
    for query in ({}, {"watch": "true"}):
        answer = await api.call("GET", path, query=query)
        assert answer.status == 429
        assert answer.headers["retry-after"] == "1"


async def test_metadata_of_another_kind_is_decoded(api: Api) -> None:
    await define(api)
    refused = await api.json("POST", THINGS, {**thing(), "kind": "Other", "metadata": {"name": {}}}, status=400)
    assert refused["message"] == (
        'Other in version "v1" cannot be handled as a Thing: json: cannot unmarshal object into Go struct field '
        "ObjectMeta.name of type string"
    )


async def test_defaults_of_definitions_are_validated_as_upstream(api: Api) -> None:
    whole = version()
    whole["schema"]["openAPIV3Schema"]["default"] = {}
    refused = await api.json("POST", DEFINITIONS, definition(whole), status=422)
    assert [cause["field"].rpartition(".")[2] for cause in refused["details"]["causes"]] == ["apiVersion", "kind"]
    union = version(spec={"x-kubernetes-int-or-string": True, "default": 1.5})
    await api.json("POST", DEFINITIONS, definition(union), status=201)


async def test_rules_need_a_type(api: Api) -> None:
    free = {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-validations": [{"rule": "true"}]}
    refused = await api.json("POST", DEFINITIONS, definition(version(spec=free)), status=422)
    assert "Internal error: internal error: failed to construct type information" in refused["message"]


async def test_discovery_of_custom_groups(api: Api) -> None:
    body = definition(group="pre.test")
    body["metadata"]["name"] = "things.pre.test"
    await define(api, body)
    (found,) = (await api.json("GET", "/apis/pre.test/v1"))["resources"]
    assert found["storageVersionHash"] == "MHTn+Ahz0Lg="  # as v1.36 tells it
    assert (await api.call("POST", "/apis/pre.test/v1")).status == 200
    refused = await api.json("GET", "/apis/pre.test/v1", status=406, headers={"accept": "text/plain"})
    assert refused["message"].startswith("only the following media types are accepted: application/json,")
    missing = await api.call("GET", "/apis/pre.test/v2")
    assert (missing.status, missing.body) == (404, b"404 page not found\n")


async def test_a_terminating_definition_only_allows_reads_and_deletes(api: Api) -> None:
    await define(api)
    await api.json("POST", THINGS, thing(metadata={"name": "a", "finalizers": ["x.test/f"]}), status=201)
    await api.json("DELETE", f"{DEFINITIONS}/things.x.test")
    await asyncio.sleep(0.1)
    (found,) = (await api.json("GET", "/apis/x.test/v1"))["resources"]
    assert found["verbs"] == ["delete", "deletecollection", "get", "list", "watch"]


async def test_numbers_beyond_64_bits_are_floats(api: Api) -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await define(api, definition(version(spec=free)))
    spec = {"size": 12345678901234567890, "list": [1 << 64, 5, 2.0, 1 << 70]}
    made = await api.json("POST", THINGS, thing(spec=spec), status=201)
    assert made["spec"] == {"size": 12345678901234567000, "list": [18446744073709552000, 5, 2, float(1 << 70)]}
    await asyncio.sleep(2)
    assert await api.json("PUT", f"{THINGS}/a", made) == made
    assert await api.json("PATCH", f"{THINGS}/a", {"spec": {"size": 12345678901234567890}}, headers=MERGE) == made


async def test_whole_floats_are_no_integers_before_they_are_stored(api: Api) -> None:
    text = {"x-kubernetes-int-or-string": True}
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "text": text, "list": {"type": "array", "items": text}},
    }
    await define(api, definition(version(spec=spec)))
    spec["x-kubernetes-validations"] = [{"rule": "!has(self.size) || self.size > 0", "message": "size"}]
    spec["properties"]["list"]["x-kubernetes-validations"] = [{"rule": "self.all(one, one != 7)"}]  # type: ignore[index]
    await define(api, definition(version(spec=spec), plural="ruled", kind="Ruled"))
    refused = await api.json("POST", THINGS, thing(spec={"size": 10**400}), status=400)
    assert refused["message"].endswith("0 into Go value of type float64")
    made = await api.json("POST", THINGS, thing(spec={"size": 1.0, "text": 2.0}), status=201)
    assert repr(made["spec"]) == "{'size': 1, 'text': 2}"
    changed = await api.json("PATCH", f"{THINGS}/a", {"spec": {"size": 1.0}}, headers=MERGE)
    assert changed["metadata"]["generation"] == 2 and repr(changed["spec"]["size"]) == "1"

    ruled = {**thing(spec={"size": 1.0, "list": [1, 2.0]}), "kind": "Ruled"}
    refused = await api.json("POST", THINGS.replace("things", "ruled"), ruled, status=422)
    assert [(cause["field"], cause["message"]) for cause in refused["details"]["causes"]] == [
        ("spec", 'Invalid value: "object": invalid data, expected int, got float64 evaluating rule: size'),
        (
            "spec.list",
            'Invalid value: "array": invalid data, expected XIntOrString value to be either a string or integer '
            "evaluating rule: self.all(one, one != 7)",
        ),
    ]
    spec["x-kubernetes-validations"] = [{"rule": "has(self.size)"}]
    await define(api, definition(version(spec=spec), plural="other", kind="Other"))
    other = {**ruled, "kind": "Other"}
    refused = await api.json("POST", THINGS.replace("things", "other"), other, status=422)
    assert "expected int, got float64 evaluating rule: has(self.size)" in refused["message"]
    ruled["spec"] = {"size": 1, "list": [1, 2], "text": 2.0}
    await api.json("POST", THINGS.replace("things", "ruled"), ruled, status=201)


async def test_metadata_that_are_null_are_none_whatever_the_schema_says(api: Api) -> None:
    await define(api)
    refused = await api.json("POST", THINGS, {**thing(), "metadata": None}, status=422)
    assert refused["message"].endswith("metadata.name: Required value: name or generateName is required")


async def test_only_the_subresources_that_a_definition_names_are_there(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    for plural, kind, parts in (("things", "Thing", {}), ("scaleds", "Scaled", {"scale": scale})):
        body = definition(version(subresources=parts), plural=plural, kind=kind)
        made = await api.json("POST", DEFINITIONS, body, status=201)
        assert made["spec"]["versions"][0]["subresources"] == parts
    await asyncio.sleep(0.1)
    await api.json("POST", THINGS, thing(status={"text": "kept"}), status=201)
    assert (await api.json("GET", f"{THINGS}/a"))["status"] == {"text": "kept"}
    assert (await api.call("GET", f"{THINGS}/a/status")).status == 404


async def test_openapi_offers_no_strategic_merge_of_custom_objects_or_parts_of_them(api: Api) -> None:
    """kubectl apply uses the first path of the kind that it finds."""
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}
    await define(api, definition(version(subresources={"status": {}, "scale": scale})))
    paths = (await api.json("GET", "/openapi/v3/apis/x.test/v1"))["paths"]
    patches = {path.rpartition("/")[2]: item["patch"] for path, item in paths.items() if "patch" in item}
    assert patches.keys() == {"{name}", "status", "scale"}
    for patch in patches.values():
        assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


@pytest.mark.parametrize("accept", ["application/json", "application/json;as=Table;g=meta.k8s.io;v=v1"])
async def test_lists_in_another_version_are_made_in_turns(
    api: Api, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    await define(api, definition(version(), version("v2", storage=False)))
    for index in range(9):
        await api.json("POST", THINGS, thing(f"o{index}"), status=201)
    monkeypatch.setattr(Part, "is_over", lambda part: True)
    for served in ("v1", "v2"):
        path, turns = THINGS.replace("v1", served), 0
        listing = asyncio.create_task(api.json("GET", path, headers={"accept": accept}))
        while not listing.done():
            turns += 1
            await asyncio.sleep(0)
        found = await listing
        assert len(found.get("items") or found["rows"]) == 9
        assert turns > 18, "one for the preparation and one for the form of each object"


async def test_the_index_of_openapi_reads_only_definitions_that_have_changed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for plural in ("things", "others"):
        await define(api, definition(plural=plural, kind=plural.capitalize()))
    before = (await api.json("GET", "/openapi/v3"))["paths"]
    made: list[str] = []

    def noted(schema: Any, target: Any, *, old: bool) -> Any:
        made.append(target.kind)
        return schema_of(schema, target, old=old)

    schema_of = published.schema_of
    monkeypatch.setattr(published, "schema_of", noted)
    spec = {"type": "object", "properties": {"more": {"type": "string"}}}
    changed = definition(version(spec=spec), plural="others", kind="Others")["spec"]
    await api.json("PATCH", f"{DEFINITIONS}/others.x.test", {"spec": changed}, headers=MERGE)
    await asyncio.sleep(0.1)
    after = (await api.json("GET", "/openapi/v3"))["paths"]
    assert {place for place in before if before[place] != after[place]} == {"apis/x.test/v1"}
    place, _, digest = after["apis/x.test/v1"]["serverRelativeURL"].partition("?hash=")
    assert (await api.call("GET", place, query={"hash": digest})).status == 200
    assert made.count("Things") == 1  # for the document


@pytest.mark.parametrize("steps", [1, 500, 1000, 1500])
async def test_openapi_v2_has_what_was_served_when_it_was_begun(
    api: Api, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    await define(api)
    monkeypatch.setattr(Part, "is_over", lambda part: True)
    asked, waiting = (asyncio.create_task(api.call("GET", "/openapi/v2")) for _ in range(2))
    for _ in range(10 + steps):
        await asyncio.sleep(0)
    assert not asked.done()
    api.server.api.catalog.set_custom({}, [])
    for task, served in ((asked, True), (waiting, False)):
        body = (await task).body.decode()
        found = msgspec.json.decode(body)
        assert ("test.x.v1.Thing" in found["definitions"]) == served
        assert ("/apis/x.test/v1/things" in found["paths"]) == served
        assert set(re.findall(r'"#/definitions/([^"]+)"', body)) <= set(found["definitions"])
    assert (await api.call("GET", "/openapi/v2")).headers["etag"] == (await waiting).headers["etag"]


async def test_openapi_names_selectable_fields_and_has_defaults_in_v3_only(api: Api) -> None:
    spec = {"type": "object", "properties": {"text": {"type": "string", "default": "d"}}}
    await define(api, definition(version(spec=spec, selectableFields=[{"jsonPath": ".spec.text"}])))
    new = (await api.json("GET", "/openapi/v3/apis/x.test/v1"))["components"]["schemas"]
    old = (await api.json("GET", "/openapi/v2"))["definitions"]
    for found, text in ((new, {"type": "string", "default": "d"}), (old, {"type": "string"})):
        assert found["test.x.v1.Thing"]["properties"]["spec"]["properties"]["text"] == text
        for kind in ("test.x.v1.Thing", "test.x.v1.ThingList"):
            assert found[kind]["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.text"}]
    as_protobuf = {"accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    assert b"x-kubernetes-selectable-fields" in (await api.call("GET", "/openapi/v2", headers=as_protobuf)).body


async def test_definitions_without_versions_or_with_defaults_and_unknown_fields_are_refused(api: Api) -> None:
    body = definition(preserveUnknownFields=True)
    refused = await api.json("POST", DEFINITIONS, body, status=422)
    text = "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema"
    assert text in refused["message"]
    del body["spec"]["versions"]
    refused = await api.json("POST", DEFINITIONS, body, status=422)
    text = "spec.versions: Invalid value: null: must have exactly one version marked as storage version"
    assert text in refused["message"]


async def test_a_status_has_its_default_from_the_start(api: Api) -> None:
    """The status in a creation is dropped, but readers get the default."""
    status = {"type": "object", "default": {"seen": -1}, "properties": {"seen": {"type": "integer"}}}
    status["properties"]["word"] = {"type": "string", "default": "none"}
    schema = {"type": "object", "properties": {"spec": SPEC, "status": status}}
    await define(api, definition(version(subresources={"status": {}}, schema={"openAPIV3Schema": schema})))
    wanted = {"seen": -1, "word": "none"}
    sent = thing(status={"seen": 3})
    dry = await api.json("POST", THINGS, sent, status=201, query={"dryRun": "All"})
    made = await api.json("POST", THINGS, sent, status=201)
    assert dry["status"] == made["status"] == (await api.json("GET", f"{THINGS}/a"))["status"] == wanted
    assert all("f:status" not in entry["fieldsV1"] for entry in made["metadata"]["managedFields"])
    query = {"fieldManager": "m"}
    applied = await api.json("PATCH", f"{THINGS}/b", thing("b"), headers=APPLY, query=query, status=201)
    assert applied["status"] == wanted


async def test_nulls_are_dropped_from_bodies_and_refused_in_applied_ones(api: Api) -> None:
    ports = {"ports": [{"name": "a", "port": None}]}
    cases = (
        ({"size": 1, "ports": None}, "spec.ports", "array"),
        ({"size": 1, **ports}, "spec.ports[0].port", "integer"),
        ({"size": None}, "spec.size", "integer"),
    )
    await define(api)
    query = {"fieldManager": "m"}
    for spec, place, kind in cases:
        refused = await api.json("PATCH", f"{THINGS}/a", thing(spec=spec), headers=APPLY, query=query, status=422)
        problem = f'Invalid value: "null": {place} in body must be of type {kind}: "null"'
        assert refused["message"] == f'Thing.x.test "a" is invalid: {place}: {problem}'
    body = thing(spec={"size": 1, "color": None})
    applied = await api.json("PATCH", f"{THINGS}/a", body, headers=APPLY, query=query, status=201)
    assert applied["spec"] == {"size": 1, "color": "red"}
    made = await api.json("POST", THINGS, thing("b", spec={"size": 1, **ports}), status=201)
    assert made["spec"]["ports"] == [{"name": "a"}]


@pytest.mark.parametrize(
    ("left", "status", "kept"),
    [({"one": None}, 200, {"one": None}), ({"many": {}}, 200, {"many": {}}), ({"one": {}}, 422, {}), ({}, 200, {})],
    ids=["null", "an empty object", "an object without a required field", "nothing"],
)
async def test_what_an_apply_leaves_of_an_object_whose_fields_it_removes(
    api: Api, left: Any, status: int, kept: Any
) -> None:
    integer = {"type": "integer"}
    one = {"type": "object", "nullable": True, "required": ["size"], "properties": {"size": integer}}
    many = {"type": "object", "properties": {"a": integer, "b": integer}}
    await define(api, definition(version(spec={"type": "object", "properties": {"one": one, "many": many}})))

    async def apply(status: int, spec: Any) -> Any:
        query = {"fieldManager": "m"}
        return await api.json("PATCH", f"{THINGS}/a", thing(spec=spec), headers=APPLY, query=query, status=status)

    await apply(201, {"one": {"size": 1}, "many": {"a": 1, "b": 2}})
    found = await apply(status, left)
    assert status == 422 or found.get("spec", {}) == kept


async def test_applied_nulls_are_dropped_where_the_schema_asks_for_no_type(api: Api) -> None:
    properties = {"any": {"x-kubernetes-preserve-unknown-fields": True}, "size": {"type": "integer"}}
    await define(api, definition(version(spec={"type": "object", "properties": properties})))
    body, query = thing(spec={"size": 1, "any": None}), {"fieldManager": "m"}
    made = await api.json("PATCH", f"{THINGS}/a", body, headers=APPLY, query=query, status=201)
    assert made["spec"] == {"size": 1}


async def test_fields_of_an_untyped_object_have_types_for_apply(api: Api) -> None:
    free = {
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}},
            "ports": SPEC["properties"]["ports"],  # type: ignore[index]
        },
    }
    spec = {"type": "object", "properties": {"free": free, "size": {"type": "integer"}}}
    await define(api, definition(version(spec=spec)))

    async def apply(manager: str, value: Any, status: int = 200) -> Any:
        body = thing(spec={"free": value})
        return await api.json(
            "PATCH", f"{THINGS}/a", body, headers=APPLY, query={"fieldManager": manager}, status=status
        )

    refused = await apply("m", {"names": [{"a": 1}]}, status=500)
    assert ".spec.free.names[0]: expected string, got &value.valueUnstructured" in refused["message"]
    await apply("m", {"names": ["a"], "more": {"x": [1]}, "ports": [{"name": "a", "port": 1}]}, status=201)
    both = await apply("n", {"ports": [{"name": "b", "port": 2}]})
    assert [port["name"] for port in both["spec"]["free"]["ports"]] == ["a", "b"]
    assert both["spec"]["free"]["more"] == {"x": [1]}


async def test_a_version_without_a_name_is_one_error(api: Api) -> None:
    refused = await api.json("POST", DEFINITIONS, definition(version("")), status=422)
    fields = [cause["field"] for cause in refused["details"]["causes"]]
    assert fields.count("spec.versions[0].name") == 1 and "spec.version" not in fields


async def test_metadata_of_custom_objects_in_protobuf(api: Api) -> None:
    await define(api)
    await api.json("POST", THINGS, thing(), status=201)
    packed, form = "application/vnd.kubernetes.protobuf", "{};as={};v=v1;g=meta.k8s.io"
    for path, kind in ((THINGS, "PartialObjectMetadataList"), (f"{THINGS}/a", "PartialObjectMetadata")):
        answer = await api.call("GET", path, headers={"accept": form.format(packed, kind)})
        assert (answer.status, answer.headers["content-type"], answer.body[:4]) == (200, packed, b"k8s\0")
    for accept in (packed, form.format(packed, "Table"), "text/plain"):
        refused = await api.call("GET", THINGS, headers={"accept": accept})
        assert refused.status == 406 and b"application/yaml, application/vnd.kubernetes.protobuf" in refused.body


def _trusting(bundle: bytes) -> Any:
    service = {"namespace": "default", "name": "converter"}
    webhook = {"clientConfig": {"service": service, "caBundle": b64encode(bundle).decode()}}
    return {"strategy": "Webhook", "webhook": {**webhook, "conversionReviewVersions": ["v1"]}}


async def test_a_definition_whose_webhook_trusts_nothing_is_not_established(
    api: Api, certificates: Certificates
) -> None:
    await define(api, definition(conversion=_trusting(b"\n")))
    path = f"{DEFINITIONS}/things.x.test"
    found = await api.json("GET", path)
    assert conditions(found)["Established"] == ("False", "InvalidCABundle")
    await asyncio.sleep(0.1)
    assert await api.json("GET", path) == found
    assert (await api.call("GET", THINGS)).status == 404
    more = await api.json("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
    await api.json("PATCH", path, {"spec": {"conversion": _trusting(certificates.ca.certificate)}}, headers=MERGE)
    await asyncio.sleep(0.1)
    found = await api.json("GET", path)
    assert conditions(more)["Established"] == ("False", "InvalidCABundle")
    assert conditions(found)["Established"] == ("True", "InitialNamesAccepted")
    refused = await api.json("PATCH", path, {"spec": {"conversion": _trusting(b"\n")}}, headers=MERGE, status=422)
    assert [(one["field"], one["message"]) for one in refused["details"]["causes"]] == [
        (
            "spec.conversion.webhookClientConfig.caBundle",
            'Invalid value: "Cg==": unable to load root certificates: unable to parse bytes as PEM block',
        )
    ]


async def test_numbers_of_a_schema_are_kept_as_floats_print_them(api: Api) -> None:
    wide = 1 << 63
    spec = {"type": "number", "enum": [wide, 1.0, 1.5, -wide - 1], "minimum": -wide - 5, "default": wide}
    made = await api.json("POST", DEFINITIONS, definition(version(spec=spec)), status=201)
    kept = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rounded = 9223372036854776000
    assert repr(kept["enum"]) == repr([rounded, 1, 1.5, -rounded])
    assert repr((kept["minimum"], kept["default"])) == repr((-rounded, rounded))
    factor = definition(version(spec={"type": "number", "multipleOf": 1.0}), plural="others", kind="Other")
    made = await api.json("POST", DEFINITIONS, factor, status=201)
    kept = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert repr(kept["multipleOf"]) == "1"

    async def refusal(code: int, **spec: Any) -> str:
        refused = await api.json("POST", DEFINITIONS, definition(version(spec=spec)), status=code)
        return str(refused["message"])

    assert 'in body must be of type integer: "number"' in await refusal(422, type="integer", default=wide)
    assert 'supported values: "1", "a"' in await refusal(422, type="string", enum=[1.0, "a"], default="b")
    huge = 10**400
    text = f"json: cannot unmarshal number {huge} into Go value of type float64"
    assert (await refusal(400, type="integer", default=huge)).endswith(text)
    assert (await refusal(400, type="integer", enum=[huge])).endswith(text)
    assert (await refusal(400, type="integer", minimum=huge)).endswith("minimum of type float64")
    assert (await refusal(400, type="string", enum=5)).endswith("enum of type []v1.JSON")


async def test_an_apply_leaves_out_metadata_that_cannot_be_read(api: Api) -> None:
    part = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    await define(api, definition(version(spec={"type": "object", "properties": {"part": part}})))
    path, query = f"{THINGS}/a", {"fieldManager": "m"}
    for meta in (
        {"generation": 1.5},
        {"generation": 1e30},
        {"creationTimestamp": "x"},
        {"deletionTimestamp": "20"},
    ):
        body = {**thing(spec={}), "metadata": {"name": "a", **meta}}
        made = await api.json("PATCH", path, body, headers=APPLY, query=query, status=201)
        assert made["metadata"]["generation"] == 1 and "deletionTimestamp" not in made["metadata"]
        body = thing(spec={"part": {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", **meta}}})
        refused = await api.json("PATCH", path, body, headers=APPLY, query=query, status=422)
        assert refused["message"].startswith('Thing.x.test "a" is invalid: spec.part.metadata: Invalid value: {')
        await api.json("DELETE", f"{THINGS}/a")


async def test_unknown_fields_applied_to_an_object_without_properties_count_as_a_change(api: Api) -> None:
    await define(api, definition(version(spec={"type": "object"})))
    path = f"{THINGS}/a"
    for generation, spec in ((1, {}), (2, {"a": "x"}), (3, {"a": None}), (3, {})):
        made = await api.call("PATCH", path, thing(spec=spec), headers=APPLY, query={"fieldManager": "m"})
        assert made.status in (200, 201)
        read = await api.json("GET", f"{THINGS}/a")
        assert (read["metadata"]["generation"], read["spec"]) == (generation, {})
        assert (await api.json("GET", THINGS))["items"][0]["spec"] == {}


@pytest.mark.parametrize(("more", "status"), [({}, 200), ({"unknown": 1}, 422)])
async def test_an_object_with_fields_beyond_its_schema_counts_as_changed(api: Api, more: Any, status: int) -> None:
    part = {"type": "object", "properties": {"k": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True}

    def spec(**tighter: Any) -> Any:
        return {"type": "object", "properties": {"part": {**part, **tighter}, "n": {"type": "integer"}}}

    await define(api, definition(version(spec=spec())))
    await api.json("POST", THINGS, thing(spec={"part": {"k": "a", **more}}), status=201)
    body = {"spec": {"versions": [version(spec=spec(maxProperties=0))]}}
    await api.json("PATCH", f"{DEFINITIONS}/things.x.test", body, headers=MERGE)
    await asyncio.sleep(0.1)
    await api.json("PATCH", f"{THINGS}/a", {"spec": {"n": 1}}, headers=MERGE, status=status)


async def test_objects_that_a_tighter_schema_no_longer_takes(api: Api) -> None:
    items = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}, "required": ["k"]}
    keyed = {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    fields = {"list": keyed, "n": {"type": "integer"}, "a": {"type": "string"}}

    async def tighten(api: Api, **changed: Any) -> None:
        spec = {"type": "object", "properties": {**fields, **changed}}
        body = {"spec": {"versions": [version(spec=spec)]}}
        await api.json("PATCH", f"{DEFINITIONS}/things.x.test", body, headers=MERGE)
        await asyncio.sleep(0.1)

    await define(api, definition(version(spec={"type": "object", "properties": fields})))
    one, two = {"k": "1", "v": "a"}, {"k": "2", "v": "b"}
    await api.json("POST", THINGS, thing(spec={"list": [one, two], "n": 1}), status=201)
    rule = {"rule": "self.size() < 2", "message": "few"}
    for more in ({"maxItems": 1}, {"maxItems": 9, "x-kubernetes-validations": [rule]}):
        await tighten(api, list={**keyed, **more})
        for order, status in (([two, one], 200), ([one, two], 200), ([{**one, "v": "c"}, two], 422)):
            await api.json("PATCH", f"{THINGS}/a", {"spec": {"list": order}}, headers=MERGE, status=status)
    await tighten(api, list={**keyed, "x-kubernetes-validations": [{"rule": "self[5].k == 'a'", "message": "sixth"}]})
    refused = await api.json("PATCH", f"{THINGS}/a", {"spec": {"a": "x"}}, headers=MERGE, status=422)
    assert refused["message"].endswith('Invalid value: "array": index out of bounds: 5 evaluating rule: sixth')
    await tighten(api, n={"type": "string"})
    await api.json("PATCH", f"{THINGS}/a", {"spec": {"a": "x"}}, headers=MERGE)
    body, query = thing(spec={"a": "y"}), {"fieldManager": "m", "force": "true"}
    refused = await api.json("PATCH", f"{THINGS}/a", body, headers=APPLY, query=query, status=500)
    why = "failed to convert new object (default/a; x.test/v1, Kind=Thing) to smd typed: .spec.n: expected string"
    text = f"failed to create manager for existing fields: {why}"  # the patch before could not be tracked
    assert refused["message"] == text + ", got &value.valueUnstructured{Value:1}"


async def test_an_apply_without_metadata_names_nothing(api: Api) -> None:
    await define(api)
    for content in ({}, {"spec": {"size": 1}}):
        body = {"apiVersion": "x.test/v1", "kind": "Thing", **content}
        refused = await api.json("PATCH", f"{THINGS}/a", body, headers=APPLY, query={"fieldManager": "m"}, status=400)
        assert refused["message"].endswith("(a based on URL) was undeterminable: name must be provided")


async def test_applying_nothing_new_sets_no_defaults_of_another_version(api: Api) -> None:
    def schema(name: str, field: str) -> dict[str, Any]:
        fields = {"a": {"type": "string"}, field: {"type": "string", "default": "x"}}
        return version(name, {"type": "object", "properties": fields}, storage=name == "v2")

    await define(api, definition(schema("v1", "b"), schema("v2", "c")))
    await api.json("POST", THINGS.replace("/v1/", "/v2/"), thing(api="v2", spec={"a": "y"}), status=201)
    for _ in range(2):
        made = await api.json("PATCH", f"{THINGS}/a", thing(spec={}), headers=APPLY, query={"fieldManager": "m"})
        assert (made["metadata"]["generation"], made["spec"]) == (1, {"a": "y"})


@pytest.mark.parametrize("webhook", [{}, {"conversionReviewVersions": None}, {"conversionReviewVersions": []}], ids=str)
async def test_a_conversion_without_a_webhook_shows_none(api: Api, webhook: dict[str, Any]) -> None:
    conversion = {"strategy": "None", "webhook": webhook}
    made = await api.json("POST", DEFINITIONS, definition(conversion=conversion), status=201)
    assert made["spec"]["conversion"] == {"strategy": "None"}
    path = f"{DEFINITIONS}/{made['metadata']['name']}"
    changed = await api.json("PATCH", path, {"spec": {"conversion": conversion}}, headers=MERGE)
    assert changed["spec"]["conversion"] == {"strategy": "None"}
    assert changed["metadata"]["generation"] == 1
