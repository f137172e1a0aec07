"""The CEL types of schemas."""

from typing import Any

import pytest

from kcm_cli.machinery.cel.declarations import Declarations, escaped
from kcm_cli.machinery.cel.types import Type

TEXT: dict[str, Any] = {"type": "string"}


def shown(schema: dict[str, Any], **options: bool) -> str | None:
    kind = Declarations(**options).declare(schema, "T", root=False)
    return None if kind is None else str(kind)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (TEXT, "string"),
        ({"type": "string", "format": "byte"}, "bytes"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "timestamp"),
        ({"type": "string", "format": "duration"}, "duration"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"type": "boolean"}, "bool"),
        ({"type": "integer", "format": "int32"}, "int"),
        ({"type": "number"}, "double"),
        ({"type": ["integer"]}, "int"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "array", "items": TEXT}, "list(string)"),
        ({"type": "array"}, None),
        ({"type": "object", "additionalProperties": {"type": "array", "items": TEXT}}, "map(string, list(string))"),
        ({"type": "object", "additionalProperties": {"oneOf": [TEXT]}}, None),
        ({"type": "object"}, "T"),
        ({"x-kubernetes-preserve-unknown-fields": True}, None),
    ],
)
def test_types(schema: dict[str, Any], kind: str | None) -> None:
    assert shown(schema) == kind


def test_int_or_string_formats_count_only_in_published_schemas() -> None:
    schema = {"type": "string", "format": "int-or-string"}
    assert (shown(schema), shown(schema, formats=True)) == ("string", "dyn")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain", "plain"),
        ("namespace", "__namespace__"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("ä", ""),
        ("1a", ""),
    ],
)
def test_names_are_escaped(name: str, written: str) -> None:
    assert escaped(name) == written


def fields(declarations: Declarations, name: str) -> dict[str, str]:
    found = declarations.fields(name)
    assert found is not None
    return {field: str(kind) for field, kind in found.items()}


def test_objects_are_named_by_their_paths() -> None:
    declarations = Declarations()
    item = {"type": "object", "properties": {"name": TEXT}}
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}, "namespace": TEXT, "x-y": TEXT},
    }
    assert declarations.declare(schema, "T", root=False) == Type("T")
    assert fields(declarations, "T") == {
        "items": "list(T.items.@idx)",
        "__namespace__": "string",
        "namespace": "string",
        "x__dash__y": "string",
    }
    assert fields(declarations, "T.items.@idx") == {"name": "string"}
    assert declarations.fields("T.other") is None


@pytest.mark.parametrize(
    ("properties", "metadata"),
    [
        pytest.param({}, {"name": "string", "generateName": "string"}, id="none"),
        pytest.param(
            {"kind": TEXT, "apiVersion": TEXT, "metadata": {"type": "object", "properties": {"name": TEXT}}},
            {"name": "string", "generateName": "string"},
            id="not all",
        ),
        pytest.param(
            {"kind": TEXT, "apiVersion": TEXT, "metadata": {"$ref": "meta"}},
            {"name": "string", "generateName": "string", "uid": "string"},
            id="its own",
        ),
    ],
)
def test_resources_have_metadata(properties: dict[str, Any], metadata: dict[str, str]) -> None:
    meta = {"type": "object", "properties": {"name": TEXT, "generateName": TEXT, "uid": TEXT}}
    declarations = Declarations({"meta": meta}.get)
    declarations.declare({"type": "object", "properties": properties}, "T", root=True)
    assert fields(declarations, "T") == {"kind": "string", "apiVersion": "string", "metadata": "T.metadata"}
    assert fields(declarations, "T.metadata") == metadata


def test_references_are_followed_except_cycles() -> None:
    tree = {
        "type": "object",
        "properties": {"below": {"allOf": [{"$ref": "tree"}], "default": {}}, "leaf": {"$ref": "leaf"}},
    }
    declarations = Declarations({"tree": tree, "leaf": TEXT}.get)
    assert declarations.declare({"$ref": "tree"}, "T", root=False) == Type("T")
    assert fields(declarations, "T") == {"below": "T.below", "leaf": "string"}
    assert fields(declarations, "T.below") == {}


def test_unresolved_references_have_no_fields() -> None:
    assert Declarations().declare({"$ref": "gone"}, "T", root=False) is None
