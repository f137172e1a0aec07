"""The texts of Go's JSON syntax errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.schema import gojson


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "unexpected end of JSON input"),
        ('{"a"', "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ('"abc', "unexpected end of JSON input"),
        ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ("x", "invalid character 'x' looking for beginning of value"),
        ("{a}", "invalid character 'a' looking for beginning of object key string"),
        ("{,}", "invalid character ',' looking for beginning of object key string"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{} {}", "invalid character '{' after top-level value"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ('"a\nb"', "invalid character '\\n' in string literal"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
    ],
)
def test_names_the_first_character_out_of_place(text, problem):
    assert gojson.syntax_error(text) == problem


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values, st.sampled_from([None, 1]))
def test_valid_json_has_no_error_and_is_read_whole(value, indent):
    text = json.dumps(value, indent=indent)
    assert gojson.syntax_error(text) is None
    assert gojson.read(text.encode()) == (value, None)
    assert gojson.decoded(gojson.parse_pairs(text)) == value


@given(values, st.data())
def test_cutting_json_short_is_an_error(value, data):
    text = json.dumps({"a": [value]})
    cut = data.draw(st.integers(0, len(text) - 1))
    assert gojson.syntax_error(text[:cut]) is not None


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'"\\ud800"', "\ufffd"),
        (b'"a\\ud800\\ud83d\\ude00b\\udc00"', "a\ufffd\U0001f600b\ufffd"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'["\xff\xe2"]', ["\ufffd\ufffd"]),
        (b"1" * 5000, float("inf")),
        (b"[-0, 18446744073709551615]", [0, 2**64 - 1]),
    ],
)
def test_what_only_go_reads(data, value):
    assert gojson.read(data)[0] == value


@pytest.mark.parametrize(
    "data", [b"[" * 30_000, b'{"a":' * 30_000, b"[" * 300 + b"]" * 300], ids=["list", "map", "whole"]
)
def test_deep_nesting_is_refused(data):
    with pytest.raises(gojson.SyntaxProblem, match="exceeded max depth$"):
        gojson.read(data)


def test_brackets_in_a_string_without_an_end_are_no_nesting():
    """The search for its end takes one pass, not one for each quotation mark in it."""
    with pytest.raises(gojson.SyntaxProblem, match="^unexpected end of JSON input$"):
        gojson.read(b'{"a":"' + b'\\"[' * 100_000)


def test_brackets_in_texts_are_no_nesting():
    data = json.dumps(["[{" * 300, '\\"[' * 300]).encode()
    assert gojson.read(data)[0] == json.loads(data)


def test_without_a_type_the_last_of_repeated_keys_wins() -> None:
    value, pairs = gojson.read(b'{"a": {"b": 1, "c": 1}, "a": {"b": 2}, "d": [{"x": 1}], "d": [{"y": 2}]}')
    assert value == {"a": {"b": 2}, "d": [{"y": 2}]} and pairs is not None
