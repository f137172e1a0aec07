"""Representations of responses on a whole server: metadata of objects and lists, tables, errors."""

from typing import Any

import pytest

from tests.kit.api import CONFIG_MAPS, Api

FORM = "application/json;as={};v={};g=meta.k8s.io"
PARTIAL, LIST = "PartialObjectMetadata", "PartialObjectMetadataList"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("path", "kind", "problem"),
    [
        ("/a", PARTIAL, ""),
        ("", LIST, ""),
        ("/a", LIST, "the requested object is not a list (*core.ConfigMap)"),
        ("", PARTIAL, "the requested object is a list (*core.ConfigMapList)"),
    ],
    ids=["object", "list", "list of an object", "object of a list"],
)
async def test_metadata_of_objects_and_lists(api: Api, path: str, kind: str, version: str, problem: str) -> None:
    await api.config_map("a", data={"k": "v"})
    headers = {"accept": FORM.format(kind, version)}
    found = await api.json("GET", CONFIG_MAPS + path, status=406 if problem else 200, headers=headers)
    if problem:
        assert found["message"] == f"you requested {kind}, but {problem}"
        return
    assert (found["kind"], found["apiVersion"]) == (kind, f"meta.k8s.io/{version}")
    one = found["items"][0] if kind == LIST else found
    assert set(one) == {"kind", "apiVersion", "metadata"}


@pytest.mark.parametrize("accept, status", [("", 406), (",application/json", 200)])
async def test_discovery_has_no_tables_but_other_forms_that_are_accepted_beside_them(
    api: Api, accept: str, status: int
) -> None:
    headers = {"accept": FORM.format("Table", "v1") + accept}
    found = await api.json("GET", "/api/v1", status=status, headers=headers)
    assert found["kind"] == ("APIResourceList" if status == 200 else "Status")


async def test_the_table_of_flow_schemas_is_in_the_order_of_their_precedence(api: Api) -> None:
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
    rows = (await api.json("GET", path, headers={"accept": FORM.format("Table", "v1")}))["rows"]
    first = [(row["cells"][2], row["cells"][0]) for row in rows]
    assert first[0] == (1, "exempt") and first == sorted(first)
    names = [one["metadata"]["name"] for one in (await api.json("GET", path))["items"]]
    assert names == sorted(names)


async def test_annotations_for_fields_of_older_versions_are_no_metadata(api: Api) -> None:
    daemon_sets = "/apis/apps/v1/namespaces/default/daemonsets"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    for name, annotations in (("a", {}), ("b", {"x": "y"})):
        made = await api.json(
            "POST", daemon_sets, {"metadata": {"name": name, "annotations": annotations}, "spec": spec}, status=201
        )
        assert made["metadata"]["annotations"]["deprecated.daemonset.template.generation"] == "1"
        for kind in (PARTIAL, "Table"):
            headers = {"accept": FORM.format(kind, "v1")}
            found = await api.json("GET", f"{daemon_sets}/{name}", headers=headers)
            shown = found["rows"][0]["object"] if kind == "Table" else found
            assert shown["metadata"].get("annotations", {}) == annotations


async def test_a_list_of_no_metadata_is_null(api: Api) -> None:
    assert (await api.json("GET", CONFIG_MAPS, headers={"accept": FORM.format(LIST, "v1")}))["items"] is None


async def test_items_of_metadata_have_no_kind_for_a_client_that_prefers_protobuf(api: Api) -> None:
    """For Go's metadata client: a single object has lost its kind after decoding, and is compared with items."""
    packed = FORM.replace("json", "vnd.kubernetes.protobuf").format(LIST, "v1")
    await api.config_map("a")
    for version in ("v1", "v1beta1"):
        headers = {"accept": f"{packed},{FORM.format(LIST, version)}"}
        (item,) = (await api.json("GET", CONFIG_MAPS, headers=headers))["items"]
        assert set(item) == ({"metadata"} if version == "v1" else {"kind", "apiVersion", "metadata"})
    headers = {"accept": f"{FORM.format(LIST, 'v1')},{packed}"}
    (item,) = (await api.json("GET", CONFIG_MAPS, headers=headers))["items"]
    assert set(item) == {"kind", "apiVersion", "metadata"}


async def test_answers_to_questions_have_no_table(api: Api) -> None:
    question = {"spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}
    table = {"accept": FORM.format("Table", "v1")}
    await api.json("POST", REVIEWS, question, status=406, headers=table)
    either = {"accept": table["accept"] + ",application/json"}
    answer = await api.json("POST", REVIEWS, question, status=201, headers=either)
    assert answer["kind"] == "SelfSubjectAccessReview"


async def test_a_watch_in_a_form_of_lists_ends_with_the_first_event(api: Api) -> None:
    await api.config_map("a")
    headers, query = {"accept": FORM.format(LIST, "v1")}, {"watch": "true"}
    assert (await api.call("GET", CONFIG_MAPS, headers=headers, query=query)).body == b""


@pytest.mark.parametrize(("plural", "rows"), [("limitranges", None), ("pods", [])])
async def test_an_empty_table_of_a_kind_without_columns_of_its_own_has_no_rows(
    api: Any, plural: str, rows: list[Any] | None
) -> None:
    table = {"accept": FORM.format("Table", "v1")}
    found = await api.json("GET", f"/api/v1/namespaces/default/{plural}", headers=table)
    assert found["rows"] == rows


async def test_a_watch_in_yaml_is_refused_in_yaml(api: Api) -> None:
    asked = {"headers": {"accept": "application/yaml"}, "query": {"watch": "1"}}
    answer = await api.call("GET", CONFIG_MAPS, **asked)
    assert (answer.status, answer.headers["content-type"]) == (406, "application/yaml")
    assert b"application/json;stream=watch" in answer.body
