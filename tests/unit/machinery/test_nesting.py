"""Texts that nest deeply are split and cut without recursion."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.machinery import codec, nesting
from kcm_cli.machinery.meta import Object, View
from kcm_cli.machinery.nesting import DEEP, Extents, Malformed
from tests.kit.growth import grows_linearly

DEPTHS = (300, 990, 1_200, 10_000, 100_000)
_LIMITS = {(3, 11): 1_200, (3, 12): 10_000, (3, 13): 10_000}
TOO_DEEP = tuple(depth for depth in DEPTHS if depth >= _LIMITS.get(sys.version_info[:2], 100_000))
"""Levels that the decoder refuses. Since Python 3.14 it goes as deep as the stack of the thread permits."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below) | st.dictionaries(st.text(), below),
)


class Part(View, frozen=True):
    name: str = ""
    below: tuple["Part", ...] = ()
    by_name: dict[str, "Part"] | None = None


class Whole(Object, frozen=True, kw_only=True):
    spec: Part = Part()


def nested(depth: int, opening: bytes = b'{"a":', core: bytes = b"{}", closing: bytes = b"}") -> bytes:
    return opening * depth + core + closing * depth


def split(data: bytes) -> Any:
    """The value, by the extents of its parts alone."""
    extents = Extents(data)

    def value(first: int, last: int) -> Any:
        if data[first : first + 1] == b"{":
            return {name: value(*ends) for name, *ends in extents.members(first)}
        if data[first : first + 1] == b"[":
            return [value(*ends) for ends in extents.elements(first)]
        return json.loads(data[first:last])

    return value(*extents.value(0))


@given(JSON, st.sampled_from([None, 1]))
def test_values_are_split_where_they_end(value: Any, indent: int | None) -> None:
    assert split(json.dumps(value, indent=indent).encode()) == value
    assert split(json.dumps(value, ensure_ascii=False).encode()) == value


@given(JSON, st.data())
def test_a_text_that_was_cut_is_malformed(value: Any, data: st.DataObject) -> None:
    text = json.dumps([value]).encode()
    with pytest.raises(Malformed):
        Extents(text[: data.draw(st.integers(0, len(text) - 1))])


@pytest.mark.parametrize("text", [b"{]", b"[}", b'{"a":[}]', b'["]', b"[] []", b"}", b"", b'{"a":1}}'])
def test_brackets_that_do_not_match_are_malformed(text: bytes) -> None:
    with pytest.raises(Malformed):
        Extents(text)


@pytest.mark.parametrize("text", [b"{1:2}", b'{"a" 1}', b'{"a":1 "b":2}', b'{"a":}', b'{"a":1,}', b'{"a"}', b"{,}"])
def test_members_without_a_name_or_a_value_are_malformed(text: bytes) -> None:
    extents = Extents(text)
    with pytest.raises(Malformed):
        list(extents.members(extents.root))


@pytest.mark.parametrize("text", [b"[1 2]", b"[,]", b"[1,]", b"[1,,2]", b"[1:2]"])
def test_elements_without_a_value_are_malformed(text: bytes) -> None:
    extents = Extents(text)
    with pytest.raises(Malformed):
        list(extents.elements(extents.root))


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("opening, closing", [(b'{"a":', b"}"), (b"[", b"]"), (b'[{"]}\\"":', b"}]")])
def test_deep_values_are_cut_out_of_fields_that_the_type_does_not_have(
    depth: int, opening: bytes, closing: bytes
) -> None:
    deep = nested(depth, opening, closing=closing)
    text = b'{"odd":%s,"spec":{"odd":%s,"name":"n","below":[{},{"name":"b","odd":%s}],"byName":{"k":{"odd":%s}}}}'
    text %= deep, deep, deep, deep
    cut = json.loads(nesting.shallow(text, Whole))
    below = [{}, {"name": "b", "odd": None}]
    assert cut == {"odd": None, "spec": {"odd": None, "name": "n", "below": below, "byName": {"k": {"odd": None}}}}
    assert codec.decode(text, Whole) == codec.decode(json.dumps(cut).encode(), Whole)


def test_what_nests_less_stays() -> None:
    text = b'{"odd":%s}' % nested(DEEP - 2)
    assert nesting.shallow(text, Whole) == text


@pytest.mark.parametrize("depth", TOO_DEEP)
def test_a_deep_value_of_a_field_is_not_cut(depth: int) -> None:
    part = nested(depth, b'{"below":[', b"{}", b"]}")
    with pytest.raises(codec.ShapeError, match="nests too deeply"):
        codec.decode(b'{"spec":%s}' % part, Whole)


@pytest.mark.parametrize(
    "opening, closing", [(b'{"below":[', b"]}"), (b'{"odd":[', b"]}"), (b'{"spec":{"byName":', b"}}")]
)
def test_the_time_grows_with_the_length(opening: bytes, closing: bytes) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text = b'{"spec":%s}' % nested(size, opening, closing=closing)
        return lambda: nesting.shallow(text, Whole)

    assert grows_linearly(prepare, 4_000)


@pytest.mark.parametrize("text", [b'["' + b'\\"' * 2, b'"\\', b'[["a",', b'{"a":'])
def test_the_time_for_a_text_that_was_cut_grows_with_its_length(text: bytes) -> None:
    def prepare(size: int) -> Callable[[], object]:
        def fail() -> None:
            with pytest.raises(Malformed):
                Extents(b"[" + text * size)

        return fail

    assert grows_linearly(prepare, 4_000)


def test_names_may_have_escapes() -> None:
    text = b'{"sp\\u0065c":{"name":"n","odd":%s}}' % nested(2_000)
    assert codec.decode(text, Whole).spec.name == "n"


def test_values_at_paths_and_of_a_name_are_cut() -> None:
    text = b'{"a":[{"b":1},{"b":{"x":2}},{}],"c":{"x" : [3],"d":[{"x":4}]},"e":"\\"x\\":5"}'
    assert json.loads(nesting.without(text, (("a", "b"), ("c", "none")), "x")) == {
        "a": [{"b": None}, {"b": None}, {}],
        "c": {"x": None, "d": [{"x": None}]},
        "e": '"x":5',
    }


@pytest.mark.parametrize("depth", DEPTHS)
def test_deep_documents_are_encoded_as_they_were(depth: int) -> None:
    text = b'{"a":[1,{"b":%s,"c":[%s,"x"]}],"d":null}' % (nested(depth), nested(depth, b"[", b"1", b"]"))
    doc = codec.decode_doc(text)
    assert codec.encode(doc) == text
    doc["d"] = 1
    assert codec.encode(doc).endswith(b',"d":1}')


def test_a_deep_list_is_no_document() -> None:
    with pytest.raises(codec.ShapeError):
        codec.decode_doc(nested(2_000, b"[", b"", b"]"))


@pytest.mark.parametrize(
    "fields", [b'{"f:\xff":{}}', b'{"f:a":{"k:\xff":{},"f:b":{}}}', b'{"v:\xff":"\xff"}', nested(100_000)]
)
def test_documents_keep_managed_fields_as_they_were(fields: bytes) -> None:
    text = b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":%s}]},"status":{"x":[1]}}' % fields
    doc = codec.decode_doc(text)
    assert codec.encode(doc) == text
    assert doc["status"] == {"x": [1]}


def test_documents_with_other_invalid_text_are_an_error() -> None:
    with pytest.raises(codec.TextError):
        codec.decode_doc(b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":{"f:\xff":{}}}]},"status":"\xff"}')


def test_members_and_elements_are_read_one_by_one() -> None:
    deep = nested(100_000)
    text = b' {"a": 1, "items" : [ {"b":2} ,%s, null], "none":[], "c":{"d":[3]} } ' % deep
    found = [(name, bytes(value), element) for name, value, element in codec.parts(text)]
    items = [("items", value, True) for value in (b'{"b":2}', deep, b"null")]
    assert found == [("a", b"1", False), *items, ("c", b'{"d":[3]}', False)]


@pytest.mark.parametrize("end", [b"", b"]", b"]} x", b",]}", b"]]", b'],"a"}', b"],}"])
def test_a_text_that_does_not_end_well_is_an_error_after_its_parts(end: bytes) -> None:
    found = codec.parts(b'{"items":[1' + end)
    assert bytes(next(found)[1]) == b"1"
    with pytest.raises(codec.DecodeError):
        list(found)
