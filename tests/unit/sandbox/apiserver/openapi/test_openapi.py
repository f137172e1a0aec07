"""The OpenAPI documents are complete, and negotiated and cached as clients expect."""

import asyncio
import json
import re

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.turns import Part
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.openapi import OpenApi, document, protobuf
from kcm_cli.sandbox.apiserver.openapi.serve import PROTOBUF_V2, answer
from kcm_cli.sandbox.apiserver.registry.catalog import ALL_VERBS, Catalog, Group, Served
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.types import ResourceInfo
from tests.kit.places import API_CASES

PROTOBUF_V3 = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
RECORDED = API_CASES / "expected/discovery-openapi.json"


def made():
    return OpenApi(Catalog(KINDS), Schemas(KINDS.schemas).builtin)


@pytest.fixture(scope="module")
def openapi():
    return made()


async def get(openapi, path, accept="application/json", **headers):
    path, _, query = path.partition("?")
    pairs = tuple(tuple(pair.split("=")) for pair in query.split("&") if pair)
    return await answer(openapi, Request("GET", path, pairs, {"accept": accept, **headers}))


async def index(openapi):
    return json.loads((await get(openapi, "/openapi/v3")).body)["paths"]


async def test_the_index_and_the_paths_are_those_of_a_real_server(openapi):
    recorded = [request.get("body") for request in json.loads(RECORDED.read_text())["requests"]]
    not_upstreams = {f"apis/{kind.group}" for kind in KINDS if kind.facts is not None}
    served = [place for place in (await index(openapi)) if not any(place.startswith(group) for group in not_upstreams)]
    assert sorted(served) == recorded[0]["paths[keys]"]
    apps = json.loads((await get(openapi, "/openapi/v3/apis/apps/v1")).body)
    assert sorted(apps) == recorded[2]["[keys]"] and sorted(apps["paths"]) == recorded[2]["paths[keys]"]
    assert sorted(json.loads((await get(openapi, "/openapi/v2")).body)) == recorded[1]["[keys]"]


async def test_every_reference_resolves(openapi):
    for place in await index(openapi):
        body = (await get(openapi, f"/openapi/v3/{place}")).body.decode()
        schemas = json.loads(body)["components"]["schemas"]
        assert set(re.findall(r'"#/components/schemas/([^"]+)"', body)) <= set(schemas), place
    body = (await get(openapi, "/openapi/v2")).body.decode()
    assert set(re.findall(r'"#/definitions/([^"]+)"', body)) <= set(json.loads(body)["definitions"])
    assert set(re.findall(r'"#/parameters/([^"]+)"', body)) == set(json.loads(body)["parameters"])


async def test_operations_have_names_of_their_own(openapi):
    paths = json.loads((await get(openapi, "/openapi/v2")).body)["paths"]
    ids = [op["operationId"] for item in paths.values() for method, op in item.items() if method != "parameters"]
    assert len(ids) == len(set(ids)) > 700


async def test_kubectl_finds_that_patches_take_field_validation(openapi):
    paths = json.loads((await get(openapi, "/openapi/v3/apis/apps/v1")).body)["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


async def test_a_field_of_another_type_keeps_its_own_text(openapi):
    schemas = json.loads((await get(openapi, "/openapi/v3/apis/apps/v1")).body)["components"]["schemas"]
    template = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["template"]
    assert template["allOf"] == [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}]
    assert template["description"].startswith("Template")


async def test_protobuf_of_v3_is_refused_and_json_is_found_among_alternatives(openapi):
    assert (await get(openapi, "/openapi/v3/apis/apps/v1", PROTOBUF_V3)).status == 406
    assert (await get(openapi, "/openapi/v3/apis/apps/v1", f"{PROTOBUF_V3},application/json")).status == 200
    assert (await get(openapi, "/openapi/v2", "*/*")).status == 200


def fields(data):
    """The fields of a protobuf message: number -> values."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            assert key & 7 in (1, 2)
            length = 8 if key & 7 == 1 else varint()
            value, at = data[at : at + length], at + length
        found.setdefault(key >> 3, []).append(value)
    return found


async def test_v2_is_served_as_protobuf_since_clients_ask_for_nothing_else(openapi):
    answered = await get(openapi, "/openapi/v2", PROTOBUF_V2)
    assert answered.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    document = fields(answered.body)
    assert document[1] == [b"2.0"]
    pairs = [fields(pair) for pair in fields(document[9][0])[1]]
    definitions = {pair[1][0].decode(): fields(pair[2][0]) for pair in pairs}
    assert definitions.keys() == json.loads((await get(openapi, "/openapi/v2")).body)["definitions"].keys()
    pod = definitions["io.k8s.api.core.v1.Pod"]
    kinds = [fields(one) for one in pod[31] if fields(one)[1] == [b"x-kubernetes-group-version-kind"]]
    assert json.loads(fields(kinds[0][2][0])[2][0]) == [{"group": "", "kind": "Pod", "version": "v1"}]
    properties = {fields(pair)[1][0] for pair in fields(pod[25][0])[1]}
    assert properties == {b"apiVersion", b"kind", b"metadata", b"spec", b"status"}


async def test_documents_are_not_sent_twice(openapi):
    first = await get(openapi, "/openapi/v3/apis/apps/v1")
    again = await get(openapi, "/openapi/v3/apis/apps/v1", **{"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


async def test_urls_with_a_hash_are_cacheable_and_old_ones_redirect(openapi):
    address = (await index(openapi))["apis/apps/v1"]["serverRelativeURL"]
    assert (await get(openapi, address)).headers["cache-control"] == "public, immutable"
    moved = await get(openapi, "/openapi/v3/apis/apps/v1?hash=OLD")
    assert (moved.status, moved.headers["location"]) == (301, address)


async def test_unknown_documents(openapi):
    assert (await get(openapi, "/openapi/v3/nope")) is None
    assert (await get(openapi, "/openapi/v3/apis/apps/v2")) is None


async def test_enumerations_and_defaults_of_fields(openapi):
    schemas = json.loads((await get(openapi, "/openapi/v3/api/v1")).body)["components"]["schemas"]
    port = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]
    assert (port["protocol"]["enum"], port["protocol"]["default"]) == (["SCTP", "TCP", "UDP"], "TCP")
    assert port["containerPort"]["default"] == 0
    claim = schemas["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]
    assert "ReadWriteOncePod" in claim["accessModes"]["items"]["enum"]
    pod = schemas["io.k8s.api.core.v1.Pod"]["properties"]["spec"]
    assert (pod["default"], pod["allOf"]) == ({}, [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}])
    assert "type" not in schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    v2 = json.loads((await get(openapi, "/openapi/v2")).body)["definitions"]
    protocol = v2["io.k8s.api.core.v1.ContainerPort"]["properties"]["protocol"]
    assert protocol["enum"] == ["SCTP", "TCP", "UDP"] and "default" not in protocol
    modes = v2["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"]["accessModes"]
    assert modes["items"]["enum"] == claim["accessModes"]["items"]["enum"]
    explained = '\n\nPossible enum values:\n - `"SCTP"` is the SCTP protocol.\n - `"TCP"` is the TCP protocol.\n'
    for shown in (port["protocol"]["description"], protocol["description"]):
        assert shown.startswith("Protocol for port.")
        assert shown.endswith(explained + ' - `"UDP"` is the UDP protocol.')
    scope = v2["io.k8s.api.admissionregistration.v1.RuleWithOperations"]["properties"]["scope"]["description"]
    assert '\n\n\nPossible enum values:\n - `"*"` means' in scope


async def test_operations_of_discovery_and_of_namespaces(openapi):
    v2 = json.loads((await get(openapi, "/openapi/v2")).body)
    assert v2["info"]["version"] == "1.36"
    deleted = v2["paths"]["/api/v1/namespaces/{name}"]["delete"]["responses"]
    assert {deleted[code]["schema"]["$ref"].rpartition(".")[2] for code in ("200", "202")} == {"Status"}
    read = v2["paths"]["/api/"]["get"]
    assert (read["tags"], read["consumes"]) == (["core"], read["produces"])
    assert v2["paths"]["/version/"]["get"]["consumes"] == ["application/json"]


async def test_shared_types_are_in_the_document_of_each_group(openapi):
    schemas = json.loads((await get(openapi, "/openapi/v3/apis/apps/v1")).body)["components"]["schemas"]
    options = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]
    kinds = [(kind["group"], kind["version"]) for kind in options["x-kubernetes-group-version-kind"]]
    assert kinds == [("", "v1"), ("apps", "v1")]


def parameters(item):
    return [(one["name"], one["in"]) for one in item["parameters"]]


async def test_parameters_shared_by_the_methods_of_a_path_are_listed_once(openapi):
    paths = json.loads((await get(openapi, "/openapi/v3/api/v1")).body)["paths"]
    base = "/api/v1/namespaces/{namespace}/pods/{name}"
    names = [("name", "path"), ("namespace", "path")]
    assert parameters(paths[base]) == [*names, ("pretty", "query")]
    assert parameters(paths[f"{base}/portforward"]) == [*names, ("ports", "query")]
    shared = parameters(paths[f"{base}/binding"])
    assert shared == [
        ("dryRun", "query"),
        ("fieldManager", "query"),
        ("fieldValidation", "query"),
        *names,
        ("pretty", "query"),
    ]
    assert "parameters" not in paths[f"{base}/binding"]["post"]
    assert [name for name, _ in parameters(paths[base]["put"])] == ["dryRun", "fieldManager", "fieldValidation"]
    assert paths[base]["delete"]["responses"]["200"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"
    }


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-10", 206, slice(0, 11)),
        ("bytes=5-", 206, slice(5, None)),
        ("bytes=-5", 206, slice(-5, None)),
        ("bytes=3-99999999", 206, slice(3, None)),
        ("bytes=-99999999", 206, slice(None)),
        ("bytes=0-1, 3-4", 200, slice(None)),
        ("bytes=", 200, slice(None)),
        ("bytes=99999999-", 416, b"invalid range: failed to overlap\n"),
        ("bytes=-0", 416, b"invalid range: failed to overlap\n"),
        ("bytes= 3 - 5 ", 206, slice(3, 6)),
        ("bytes=5-3", 416, b"invalid range\n"),
        ("bytes=99999999-3", 416, b"invalid range: failed to overlap\n"),
        ("bytes=a-b", 416, b"invalid range\n"),
        ("bytes=-", 416, b"invalid range\n"),
        ("items=0-1", 416, b"invalid range\n"),
    ],
)
async def test_parts_of_documents(openapi, asked, status, part):
    whole = await get(openapi, "/openapi/v3/version")
    found = await get(openapi, "/openapi/v3/version", range=asked)
    assert (found.status, found.body) == (status, whole.body[part] if isinstance(part, slice) else part)
    if status == 206:
        first, last = whole.body.index(found.body), len(found.body) - 1
        assert found.headers["content-range"] == f"bytes {first}-{first + last}/{len(whole.body)}"
    assert (await get(openapi, "/openapi/v3/version", range=asked, **{"if-range": "other"})).body == whole.body


async def test_operations_of_v2_share_their_parameters(openapi):
    found = json.loads((await get(openapi, "/openapi/v2")).body)
    pods = found["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    named = [one.get("$ref", one.get("name")) for one in pods["parameters"]]
    assert named == ["name", "#/parameters/namespace-vgWSWtn3", "#/parameters/pretty-tJGM1-ng"]
    assert pods["parameters"][0]["description"] == "name of the Pod"
    patch = [one.get("$ref", one.get("name")) for one in pods["patch"]["parameters"]]
    managers = ["#/parameters/fieldManager-7c6nTn1T", "fieldValidation", "#/parameters/force-tOGGb0Yi"]
    assert patch == ["#/parameters/body-78PwaGsr", "dryRun", *managers]
    assert "#/parameters/fieldManager-Qy4HdaTW" in [one.get("$ref") for one in pods["put"]["parameters"]]
    paths = found["paths"]
    attach, exec_ = (paths[f"/api/v1/namespaces/{{namespace}}/pods/{{name}}/{each}"] for each in ("attach", "exec"))
    refs = [next(one["$ref"] for one in each["parameters"] if "container" in str(one)) for each in (attach, exec_)]
    assert refs == ["#/parameters/container-_Q-EJ3nR", "#/parameters/container-i5dOmRiM"]
    watch = found["parameters"]["watch-XNNPZGbK"]
    assert (watch["in"], watch["type"]) == ("query", "boolean") and watch["description"]


def test_shared_parameters_in_protobuf():
    shared = {"a-1": {"name": "a", "in": "query", "description": "d", "type": "string", "uniqueItems": True}}
    paths = {"/x": {"parameters": [{"$ref": "#/parameters/a-1"}]}}
    document = fields(protobuf.encode({"swagger": "2.0", "parameters": shared, "paths": paths}))
    (named,) = fields(document[10][0])[1]
    assert fields(named)[1] == [b"a-1"]
    query = fields(fields(fields(fields(named)[2][0])[2][0])[3][0])
    assert (query[4], query[2]) == ([b"a"], [b"query"])
    (path,) = fields(document[8][0])[2]
    (item,) = fields(fields(path)[2][0])[9]
    assert fields(fields(item)[2][0])[1] == [b"#/parameters/a-1"]


@pytest.mark.real_time
async def test_the_document_of_v2_is_made_in_turns_and_once():
    openapi, turns = made(), 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    first, again, encoded = await asyncio.gather(openapi.v2(), openapi.v2(), openapi.v2_protobuf())
    beside.cancel()
    assert first is again and first is await openapi.v2()
    assert encoded is await openapi.v2_protobuf()
    assert turns > 40, "each of two documents takes 80 ms, a turn 1"


@pytest.mark.real_time
async def test_a_document_of_before_and_after_a_change_is_not_kept():
    openapi = made()
    asked, waiting = (asyncio.create_task(openapi.v2()) for _ in range(2))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not asked.done()
    for changed in openapi._catalog.changed:
        changed()
    assert await asked is not await waiting
    assert await openapi.v2() is await waiting


def custom(number):
    gvr, verbs = GVR("x.test", "v1", f"k{number}s"), frozenset(ALL_VERBS)
    info = ResourceInfo(gvr, f"K{number}", f"k{number}", True, verbs, custom=True)
    return Served(info, gvr, list_kind=f"{info.kind}List")


async def test_the_document_of_a_group_is_made_in_turns_of_what_was_served_when_it_was_begun(monkeypatch):
    monkeypatch.setattr(Part, "is_over", lambda part: True)
    openapi, turns = made(), 0
    openapi._catalog.set_custom({"x.test": Group("x.test", ("v1",), "v1")}, [custom(number) for number in range(20)])
    asked = asyncio.create_task(openapi.v3("apis/x.test/v1"))
    while not asked.done():
        turns += 1
        await asyncio.sleep(0)
        if turns == 30:
            openapi._catalog.set_custom({}, [])
    assert turns > 100, "20 kinds have some operations each, and the schema of their lists"
    body = (await asked).body.decode()
    for number in range(20):
        assert f'"/apis/x.test/v1/k{number}s"' in body and f'"test.x.v1.K{number}List":{{' in body
    assert await openapi.v3("apis/x.test/v1") is None


async def test_the_document_of_a_group_takes_work_for_its_kinds_and_not_for_pairs_of_them(monkeypatch):
    named, counted = document.custom_name, []

    def name_of(served):
        counted.append(served)
        return named(served)

    monkeypatch.setattr(document, "custom_name", name_of)
    openapi = made()
    for count in (20, 40):
        served = [custom(number) for number in range(count)]
        openapi._catalog.set_custom({"x.test": Group("x.test", ("v1",), "v1")}, served)
        counted.clear()
        body = (await openapi.v3("apis/x.test/v1")).body.decode()
        assert '"test.x.v1.K0List"' in body
        assert len(counted) <= 10 * count
