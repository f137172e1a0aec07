"""Every view of ``kcm_cli.api`` decodes whatever the kind's schema allows, nulls and nonsense included.

So does each of its fields when it alone is null: a view that forgets it stops a controller for the whole cluster.
"""

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kcm_cli.api.resource import Resource, Undecodable
from kcm_cli.machinery import codec
from tests.unit.api.schemas import definition_of, document, resources

RESOURCES = resources()
EVERY = pytest.mark.parametrize("resource", RESOURCES.values(), ids=RESOURCES)


def _has_schema(resource: Resource[Any]) -> bool:
    try:
        return bool(definition_of(resource))
    except KeyError:
        return False


SCHEMED = {name: resource for name, resource in RESOURCES.items() if _has_schema(resource)}
WITH_SCHEMA = pytest.mark.parametrize("resource", SCHEMED.values(), ids=SCHEMED)


def test_all_kinds_but_those_of_alpha_and_beta_groups_have_a_schema() -> None:
    assert all(
        "alpha" in RESOURCES[name].gvr.version or "beta" in RESOURCES[name].gvr.version
        for name in RESOURCES.keys() - SCHEMED.keys()
    )


@WITH_SCHEMA
def test_any_object_of_the_schema_is_decoded(resource: Resource[Any]) -> None:
    for seed in range(25):
        doc = document(random.Random(seed), definition_of(resource))
        text = json.dumps(doc).encode()
        resource.decode(text)
        named = {**doc, "metadata": {**(doc.get("metadata") or {}), "name": "a"}}
        found = resource.decode_or_explain(json.dumps(named).encode())
        assert not isinstance(found, Undecodable), seed
        assert found.name == "a"


@EVERY
def test_each_field_can_be_null(resource: Resource[Any]) -> None:
    """One by one, at every depth: equal to the field being absent."""
    for doc, absent in _with_one_null(msgspec.inspect.type_info(resource.view)):
        assert codec.decode(json.dumps(doc).encode(), resource.view) == codec.decode(
            json.dumps(absent).encode(), resource.view
        ), doc


@EVERY
@pytest.mark.parametrize("odd", [5, "x", [], True, {"metadata": "x"}, {"metadata": {"name": 5}}, {"metadata": []}, {}])
def test_errors_of_invalid_objects_are_explained(resource: Resource[Any], odd: object) -> None:
    found = resource.decode_or_explain(json.dumps(odd).encode())
    assert isinstance(found, Undecodable)
    assert found.why


@WITH_SCHEMA
@pytest.mark.parametrize("resource_text", [b"[" * 2_000 + b"]" * 2_000, b'{"a":' * 2_000 + b"{}" + b"}" * 2_000])
def test_deep_fields_that_a_view_does_not_have_change_nothing_else(
    resource: Resource[Any], resource_text: bytes
) -> None:
    """What is decoded without recursion equals what the decoder makes of the same object without these fields."""
    for seed in range(5):
        doc = document(random.Random(seed), definition_of(resource))
        doc["metadata"] = {**(doc.get("metadata") or {}), "name": "a", "managedFields": "DEEP"}
        odd = {**doc, "zzz": "DEEP"}
        for part in ("spec", "status"):
            if isinstance(odd.get(part), dict):
                odd[part] = {"zzz": "DEEP", **odd[part]}
        expected = resource.decode(json.dumps(doc).encode())
        found = resource.decode(json.dumps(odd).encode().replace(b'"DEEP"', resource_text))
        assert replace(found, raw=None) == replace(expected, raw=None), seed


@given(st.data())
@settings(max_examples=400)
def test_any_bytes_are_an_object_or_explained(data: st.DataObject) -> None:
    resource = SCHEMED[data.draw(st.sampled_from(sorted(SCHEMED)))]
    doc = document(random.Random(data.draw(st.integers(0, 50))), definition_of(resource))
    text = bytearray(json.dumps({**doc, "metadata": {"name": "a", "uid": "u"}}).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        piece = data.draw(st.sampled_from(PIECES))
        text[at : at + data.draw(st.integers(0, 3))] = piece
    found = resource.decode_or_explain(bytes(text))
    assert found.why if isinstance(found, Undecodable) else found.name


PIECES = [
    b"[" * 3_000,
    b"]" * 3_000,
    b'{"a":' * 3_000,
    b"}" * 3_000,
    b"{",
    b"]",
    b'"',
    b"\\",
    b"\\ud800",
    b"\xff",
    b"\x00",
]
PIECES += [b"9" * 5_000, b"1e999", b"null", b",", b":", b"", b'"metadata":{"name":"b"},', b"[" * 2_000 + b"]" * 2_000]


def _with_one_null(info: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Documents in which one field is null, and the same without it."""
    match info:
        case msgspec.inspect.StructType() if depth < 6:
            found: list[tuple[Any, Any]] = []
            for field in info.fields:
                found.append(({field.encode_name: None}, {}))
                below = _with_one_null(field.type, depth + 1)
                found += [({field.encode_name: doc}, {field.encode_name: absent}) for doc, absent in below]
            return found
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return [([doc], [absent]) for doc, absent in _with_one_null(info.item_type, depth + 1)]
        case msgspec.inspect.DictType():
            return [({"k": doc}, {"k": absent}) for doc, absent in _with_one_null(info.value_type, depth + 1)]
        case msgspec.inspect.UnionType():
            return [pair for one in info.types for pair in _with_one_null(one, depth)]
        case _:
            return []
