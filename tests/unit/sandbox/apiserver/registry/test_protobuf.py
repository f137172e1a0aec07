"""Protobuf responses are equal to the JSON documents that they are encoded from."""

import asyncio
import json
from typing import Any

import pytest

from kcm_cli.api.protobuf.decoding import UnknownForm, to_json
from kcm_cli.api.protobuf.encoding import to_protobuf
from kcm_cli.machinery.protofields import fields
from kcm_cli.machinery.protowire import packed
from kcm_cli.rest.transport import Request, Stream
from kcm_cli.runtime.turns import Part
from kcm_cli.sandbox.apiserver.types import User
from tests.kit.api import CONFIG_MAPS, Api
from tests.unit.sandbox.fuzz.objects import valid

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = {"headers": {"accept": PROTOBUF}}
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TYPED: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def again(doc: dict[str, Any]) -> Any:
    return json.loads(to_json(to_protobuf(doc)))


@pytest.mark.parametrize(
    "content",
    [
        {"data": {"b": "2", "a": ""}, "binaryData": {"x": "/wA="}, "immutable": False},
        {"metadata": {"name": "a", "creationTimestamp": "2024-02-03T04:05:06Z", "generation": -1}},
        {"metadata": {"name": "a", "creationTimestamp": "0007-02-03T04:05:06Z"}},
        {"metadata": {"managedFields": [{"manager": "m", "fieldsV1": {"f:data": {".": {}}}}], "finalizers": ["x"]}},
        {"metadata": {"annotations": {"ü": "\n"}, "ownerReferences": [{"name": "o", "controller": True}]}},
    ],
)
def test_what_is_written_is_read_again(content: dict[str, Any]) -> None:
    assert again(TYPED | content) == TYPED | content


def test_embedded_messages_and_special_ones_are_read_again() -> None:
    probe = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 0}
    container = {"name": "c", "resources": {"limits": {"cpu": "1500m"}}, "livenessProbe": probe}
    volume = {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container], "volumes": [volume]}}
    assert again(pod) == pod
    renewed = {"renewTime": "2024-02-03T04:05:06.000007Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": renewed}
    assert again(lease) == lease
    renewed["renewTime"] = "0999-02-03T04:05:06.000007Z"
    assert again(lease) == lease
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 2}}
    assert again(budget) == budget
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": {"spec": [1, None]}, "revision": 3}
    assert again(revision) == revision


SCHEMA = {
    "type": "object",
    "$ref": "#/x",
    "default": {"a": [1, None]},
    "maximum": 10,
    "minimum": 0.5,
    "enum": ["a", None],
    "properties": {
        "list": {"type": "array", "items": {"type": "string"}},
        "tuple": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "open": {"type": "object", "additionalProperties": True},
        "shut": {"type": "object", "additionalProperties": False},
    },
    "dependencies": {"a": ["b"], "c": {"type": "object"}},
    "x-kubernetes-preserve-unknown-fields": True,
    "x-kubernetes-list-map-keys": ["k"],
    "x-kubernetes-validations": [{"rule": "self.a", "optionalOldSelf": True}],
}


DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.x.test"},
    "spec": {
        "group": "x.test",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}],
    },
}


def with_schema(schema: dict[str, Any]) -> dict[str, Any]:
    (version,) = DEFINITION["spec"]["versions"]
    versions = [version | {"schema": {"openAPIV3Schema": schema}}]
    return DEFINITION | {"spec": DEFINITION["spec"] | {"versions": versions}}


def test_a_definition_with_its_schema_is_read_again() -> None:
    assert again(with_schema(SCHEMA)) == with_schema(SCHEMA)


async def test_a_definition_is_accepted_and_answered_in_protobuf(api: Api) -> None:
    path, headers = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"content-type": PROTOBUF}
    sent = with_schema({"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}})
    made = await api.call("POST", path, to_protobuf(sent), headers=headers | {"accept": PROTOBUF})
    assert made.status == 201
    stored = await api.json("GET", f"{path}/things.x.test")
    assert json.loads(to_json(made.body))["spec"] == stored["spec"]
    assert stored["spec"]["versions"][0]["schema"] == sent["spec"]["versions"][0]["schema"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_items_of_a_list_are_encoded_in_turns(api: Api, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    for name in "abcd":
        await api.config_map(name)
    plain = await api.json("GET", CONFIG_MAPS)
    monkeypatch.setattr(Part, "is_over", lambda self: True)
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    answer = await api.call(method, CONFIG_MAPS, headers={"accept": PROTOBUF})
    beside.cancel()
    assert answer.body == to_protobuf(plain)
    assert others >= len(plain["items"]) == 4


def test_kinds_without_protobuf_are_known() -> None:
    with pytest.raises(UnknownForm):
        to_protobuf({"apiVersion": "x.test/v1", "kind": "Thing"})


async def test_objects_lists_and_refusals_are_sent(api: Api) -> None:
    plain = await api.config_map("a", data={"k": "v"})
    answer = await api.call("GET", f"{CONFIG_MAPS}/a", **ACCEPT)
    assert answer.headers["content-type"] == PROTOBUF
    assert json.loads(to_json(answer.body)) == plain
    listed = (await api.call("GET", CONFIG_MAPS, **ACCEPT)).body
    envelope = dict(fields(listed[4:]))
    assert envelope[1] == packed(1, b"v1") + packed(2, b"ConfigMapList")
    assert [number for number, _ in fields(envelope[2])] == [1, 2]  # type: ignore[arg-type]
    refused = await api.call("GET", f"{CONFIG_MAPS}/none", **ACCEPT)
    assert (refused.status, refused.headers["content-type"]) == (404, PROTOBUF)
    assert json.loads(to_json(refused.body))["details"] == {"name": "none", "kind": "configmaps"}
    partial = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    shown = await api.call("GET", f"{CONFIG_MAPS}/a", headers={"accept": partial})
    assert json.loads(to_json(shown.body))["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(
    ("accept", "kind", "media"),
    [
        (PROTOBUF, "APIGroupList", PROTOBUF),
        (f"{PROTOBUF};{AGGREGATED}", "APIGroupDiscoveryList", f"{PROTOBUF};{AGGREGATED}"),
        (f"{PROTOBUF};{AGGREGATED},application/json;{AGGREGATED}", "", f"application/json;{AGGREGATED}"),
        (f"{PROTOBUF},application/json", "", "application/json"),
    ],
    ids=["list", "all in one", "json beside it", "list beside it"],
)
async def test_discovery_has_both_forms(api: Api, accept: str, kind: str, media: str) -> None:
    plain = (await api.call("GET", "/apis", headers={"accept": accept.replace(PROTOBUF, "application/json")})).body
    answer = await api.call("GET", "/apis", headers={"accept": accept})
    assert (answer.status, answer.headers["content-type"]) == (200, media)
    assert json.loads(to_json(answer.body) if kind else answer.body)["kind"] == json.loads(plain)["kind"]
    if kind:
        assert json.loads(to_json(answer.body))["kind"] == kind


async def test_a_watch_sends_frames_with_their_length(api: Api) -> None:
    await api.config_map("a")
    query = (("watch", "1"), ("resourceVersion", "0"), ("timeoutSeconds", "1"))
    request = Request("GET", CONFIG_MAPS, query, {"accept": PROTOBUF})
    stream = await api.server.api.handle_as(User("x", groups=("system:masters",)), request)
    assert isinstance(stream, Stream)
    assert stream.headers["content-type"] == f"{PROTOBUF};stream=watch"
    data = b"".join([chunk async for chunk in stream.chunks])
    size = int.from_bytes(data[:4], "big")
    event = dict(fields(data[4 : 4 + size]))
    assert (event[1], len(data)) == (b"ADDED", 4 + size)
    raw = dict(fields(event[2]))[1]  # type: ignore[arg-type]
    assert json.loads(to_json(raw))["metadata"]["name"] == "a"  # type: ignore[arg-type]


def representable(value: Any) -> Any:
    """Without values that protobuf does not have."""
    if isinstance(value, dict):
        shown = {key: representable(item) for key, item in value.items()}
        return {key: item for key, item in shown.items() if item is not None and item != {} and item != []}
    return [representable(item) for item in value] if isinstance(value, list) else value


async def test_every_kind_is_encoded(api: Api) -> None:
    sent = set()
    for collection, doc in valid().items():
        path = "/" + collection.format(namespace="default")
        named = {**doc, "metadata": {"name": "a", **(doc.get("metadata") or {})}}
        made = await api.call("POST", path, named, query={"dryRun": "All"})
        if made.status != 201:
            continue
        plain = json.loads(made.body)
        if plain["kind"] == "CustomResourceDefinition":
            continue
        for claim in plain["spec"].get("volumeClaimTemplates", []) if plain["kind"] == "StatefulSet" else []:
            del claim["kind"], claim["apiVersion"]
        assert representable(again(plain)) == representable(plain)
        sent.add(plain["kind"])
    assert len(sent) > 30
