"""Patches on a whole server: the texts of errors, and unusual patches."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.kinds.core.binding import PODS
from tests.kit.api import CONFIG_MAPS, Api

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
JSON, MERGE, STRATEGIC, APPLY = (
    {"content-type": f"application/{name}"}
    for name in ("json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
)
PROBE = {"livenessProbe": {"tcpSocket": {"port": [1]}}}


def deployment() -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


@pytest.mark.parametrize(
    ("headers", "patch", "status", "problem"),
    [
        pytest.param(STRATEGIC, {"spec": {"replicas": "x"}}, 422, "unrecognized type: int32", id="text for a number"),
        pytest.param(STRATEGIC, {"spec": {"replicas": 1.5}}, 422, "cannot convert float64 to int32", id="fraction"),
        pytest.param(
            STRATEGIC, {"metadata": {"labels": {"n": 1}}}, 422, "cannot convert int64 to string", id="number for a text"
        ),
        pytest.param(
            STRATEGIC,
            {"spec": {"strategy": {"type": 1}}},
            422,
            "cannot convert int64 to v1.DeploymentStrategyType",
            id="number for a named text",
        ),
        pytest.param(
            STRATEGIC,
            {"spec": {"template": {"spec": {"volumes": [{"persistentVolumeClaim": 1, "name": "v"}]}}}},
            422,
            "cannot restore struct from: int64",
            id="number for an object",
        ),
        pytest.param(
            STRATEGIC, {"metadata": {"labels": {"n": True}}}, 422, "unrecognized type: string", id="boolean for a text"
        ),
        pytest.param(
            STRATEGIC,
            {"metadata": {"finalizers": ["bare"]}},
            422,
            "name is neither a standard finalizer name nor is it fully qualified",
            id="finalizer",
        ),
        pytest.param(MERGE, None, 400, "Invalid JSON Patch", id="null"),
        pytest.param(MERGE, {"apiVersion": None}, 400, "name must be provided", id="no version"),
        pytest.param(JSON, [None], 422, "the server rejected our request", id="null operation"),
        pytest.param(
            APPLY,
            {**deployment(), "spec": {"template": {"spec": {"containers": [{"name": "c", **PROBE}]}}}},
            500,
            "failed to convert new object (/d; apps/v1, Kind=Deployment) to proper version: unable to convert "
            "unstructured object to apps/v1, Kind=Deployment: json: cannot unmarshal array into Go value of type int32",
            id="list for a number or text",
        ),
    ],
)
async def test_patches_that_are_refused(api: Api, headers: Any, patch: Any, status: int, problem: str) -> None:
    await api.json("POST", DEPLOYMENTS, deployment(), status=201)
    body = b"null" if patch is None else patch
    query = {"fieldManager": "m"}
    refused = await api.json("PATCH", DEPLOYMENTS + "/d", body, status=status, headers=headers, query=query)
    assert problem in refused["message"]


@pytest.mark.parametrize(
    ("headers", "patch", "replicas"),
    [
        pytest.param(STRATEGIC, {"spec": {"replicas": 2**32 + 3}}, 3, id="a number too large is cut"),
        pytest.param(MERGE, {"apiVersion": "apps/v1beta1", "spec": {"replicas": 2}}, 2, id="an old version is read"),
    ],
)
async def test_patches_that_are_accepted(api: Api, headers: Any, patch: Any, replicas: int) -> None:
    await api.json("POST", DEPLOYMENTS, deployment(), status=201)
    found = await api.json("PATCH", DEPLOYMENTS + "/d", patch, headers=headers)
    assert (found["spec"]["replicas"], found["apiVersion"]) == (replicas, "apps/v1")


@pytest.mark.parametrize("name", ["odd", "odd/name", "odd/spec", "/spec"])
async def test_unknown_fields_of_a_strategic_patch_are_dropped(api: Api, name: str) -> None:
    made = await api.json("POST", DEPLOYMENTS, deployment(), status=201)
    found = await api.json("PATCH", DEPLOYMENTS + "/d", {name: {"replicas": 2}}, headers=STRATEGIC)
    assert found == made


async def test_a_refused_result_is_shown(api: Api) -> None:
    await api.json("POST", DEPLOYMENTS, deployment(), status=201)
    refused = await api.json("PATCH", DEPLOYMENTS + "/d", {"kind": "Odd"}, status=422, headers=MERGE)
    assert '\\"kind\\":\\"Odd\\"' in refused["message"]


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        pytest.param({"metadata": {"labels": {"z": 1}}}, '"metadata":{"creationTimestamp"', id="touched"),
        pytest.param({"spec": {"replicas": "x"}}, '"metadata":{"name"', id="not touched"),
        pytest.param(
            {"spec": {"paused": {"b": [{"d": 1, "c": 2}], "a": 3}}}, '{"a":3,"b":[{"c":2,"d":1}]}', id="brought"
        ),
    ],
)
async def test_a_refused_merge_patch_sorts_what_it_touches(api: Api, patch: Any, shown: str) -> None:
    await api.json("POST", DEPLOYMENTS, deployment(), status=201)
    refused = await api.json("PATCH", DEPLOYMENTS + "/d", patch, status=422, headers=MERGE)
    assert shown in refused["message"].replace("\\", "")


async def test_directives_of_a_strategic_patch_are_echoed(api: Api) -> None:
    limits = "/api/v1/namespaces/default/limitranges"
    patch: dict[str, Any] = {"spec": {"limits": [{"type": "Pod", "$patch": "delete"}]}}
    await api.json("POST", limits, {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod"}]}}, status=201)
    query = {"fieldValidation": "Strict"}
    refused = await api.json("PATCH", f"{limits}/l", patch, headers=STRATEGIC, query=query, status=422)
    assert "map[spec:map[limits:[map[$patch:delete type:Pod]]]]" in refused["message"]
    patch["spec"]["$patch"] = "replace"
    refused = await api.json("PATCH", f"{limits}/l", patch, headers=STRATEGIC, query=query, status=422)
    assert "map[spec:map[limits:[map[$patch:delete type:Pod]]]]" in refused["message"]


async def test_a_patch_keeps_the_warning_of_its_resource(api: Api) -> None:
    endpoints = "/api/v1/namespaces/default/endpoints"
    await api.json("POST", endpoints, {"metadata": {"name": "e"}}, status=201)
    answer = await api.call("PATCH", endpoints + "/e", {}, headers=MERGE)
    assert "Endpoints is deprecated" in answer.headers["warning"]


@pytest.mark.parametrize("path", ["/status", "/scale"])
async def test_an_apply_to_a_part_creates_nothing(api: Api, path: str) -> None:
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "none"}}
    query = {"fieldManager": "m"}
    await api.json("PATCH", f"{DEPLOYMENTS}/none{path}", body, status=404, headers=APPLY, query=query)
    await api.json("PATCH", f"{DEPLOYMENTS}/none{path}", b"{a: [", status=404, headers=APPLY, query=query)


async def test_repeated_keys_of_an_apply_are_reported_by_line(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b, a: c}\n"
    answer = await api.call("PATCH", CONFIG_MAPS + "/c", body, headers=APPLY, query={"fieldManager": "m"})
    assert answer.headers["warning"] == '299 - "line 4: key \\"a\\" already set in map"'
    unknown = body + b"foo: 1\n"
    query = {"fieldManager": "m", "fieldValidation": "Strict"}
    refused = await api.json("PATCH", CONFIG_MAPS + "/c", unknown, headers=APPLY, query=query, status=500)
    assert refused["message"].endswith(".foo: field not declared in schema")
    answer = await api.call("PATCH", CONFIG_MAPS + "/c", unknown, headers=APPLY, query={"fieldManager": "m"})
    assert answer.status == 500
    assert "warning" not in answer.headers


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("\\ud83d\\ude00", "found invalid Unicode character escape code"),
        ("\\ud83d", "found invalid Unicode character escape code"),
        ("a\\/b", "found unknown escape character"),
        ("\x7f", "control characters are not allowed"),
        ("\x9f", "control characters are not allowed"),
        ("\ufffe", "control characters are not allowed"),
        ('a","' + "k" * 1025 + '":"', "did not find expected ',' or '}'"),
        ('a","k"\n:"', "did not find expected ',' or '}'"),
    ],
)
async def test_an_applied_body_is_yaml_also_where_it_is_json(api: Api, value: str, problem: str) -> None:
    body = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c"}},"data":{{"a":"{value}"}}}}'
    options = {"headers": APPLY, "query": {"fieldManager": "m"}}
    refused = await api.json("PATCH", CONFIG_MAPS + "/c", body.encode(), status=400, **options)
    assert refused["message"].endswith(problem)
    refused = await api.json("PATCH", CONFIG_MAPS + "/c", b"\n\t{}", status=400, **options)
    assert refused["message"].endswith("yaml: line 2: found character that cannot start any token")


async def test_lines_in_texts_of_an_applied_body_are_folded(api: Api) -> None:
    body = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"a \x85 b"}}'
    options = {"headers": APPLY, "query": {"fieldManager": "m"}}
    made = await api.json("PATCH", CONFIG_MAPS + "/c", body.encode(), status=201, **options)
    assert made["data"] == {"a": "a b"}


@pytest.mark.parametrize(
    ("body", "query", "status"),
    [
        ({"kind": "DeleteOptions", "apiVersion": "apps/v1"}, {}, 200),
        ({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}, {}, 200),
        ({"kind": "Pod", "apiVersion": "v1"}, {}, 400),
        (None, {"resourceVersion": "1"}, 409),
        (None, {"uid": "other"}, 409),
    ],
    ids=["another group's", "the common ones", "a pod", "version", "uid"],
)
async def test_options_of_a_delete(api: Api, body: Any, query: dict[str, str], status: int) -> None:
    await api.config_map("c")
    await api.json("DELETE", CONFIG_MAPS + "/c", body, status=status, query=query)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"manager": "m" * 129}, "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"),
        ({"manager": "a\tb"}, "invalid character U+0009 (at position 1)"),
        ({"manager": "m", "subresource": "s" * 257}, "subresource: Too long: may not be more than 256 bytes"),
    ],
    ids=["length", "letter", "subresource"],
)
async def test_names_in_stated_managed_fields(api: Api, entry: Any, problem: str) -> None:
    await api.config_map("c", data={"a": "1"})
    rest = {"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}
    body = {"metadata": {"name": "c", "managedFields": [{**rest, **entry}]}, "data": {"a": "1"}}
    refused = await api.json("PUT", CONFIG_MAPS + "/c", body, status=422)
    assert problem in refused["message"]


STATUS_PATCHES: list[dict[str, Any]] = [
    {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": None}]}},
    {"status": None},
    {"spec": None, "status": {"phase": "Running"}},
    {"spec": {"nodeName": "other"}, "status": {"phase": "Running"}},
    {"metadata": {"labels": {"x": "y"}}, "spec": {"$patch": "replace"}},
]


@pytest.mark.parametrize("patch", STATUS_PATCHES)
async def test_a_patch_of_the_status_leaves_the_spec_and_earlier_versions_as_they_are(api: Api, patch: Any) -> None:
    pods = "/api/v1/namespaces/default/pods"
    body = {"metadata": {"name": "p"}, "spec": deployment()["spec"]["template"]["spec"]}
    await api.call("POST", pods, {"apiVersion": "v1", "kind": "Pod", **body})
    before = api.server.api.core.store.get(PODS, "default", "p")
    answer = await api.call("PATCH", f"{pods}/p/status", patch, headers=STRATEGIC)
    assert answer.status == 200
    after = api.server.api.core.store.get(PODS, "default", "p")
    assert after.doc["spec"] == before.doc["spec"]
    for version in (before, after):
        assert version.doc == version.copy()
