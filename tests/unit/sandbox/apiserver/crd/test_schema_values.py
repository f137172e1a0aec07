"""Validation of values by schemas, with upstream's texts in its order; pruning, nulls, defaults, formats."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.crd import shape
from kcm_cli.sandbox.apiserver.crd.formats import check_of, recognized
from kcm_cli.sandbox.apiserver.crd.lists import repeated
from kcm_cli.sandbox.apiserver.crd.rules import rules_of
from kcm_cli.sandbox.apiserver.crd.structural import structural
from kcm_cli.sandbox.apiserver.crd.values import Checker

INTEGER = {"type": "integer"}


def texts(schema, value, *old):
    """The errors of a field ``x`` with such a schema."""
    checker = Checker({"type": "object", "properties": {"x": schema}})
    found = checker.check({"x": value}, *({"x": one} for one in old)).below("")
    return [f"{error.field}: {error.message}" for error in found]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(
            INTEGER, "1", ['x: Invalid value: "string": x in body must be of type integer: "string"'], id="type"
        ),
        pytest.param(INTEGER, 1.0, [], id="whole float"),
        pytest.param(
            {"type": "string"},
            1.0,
            ['x: Invalid value: "number": x in body must be of type string: "number"'],
            id="whole float as text",
        ),
        pytest.param(
            {"type": "integer", "maximum": 4294967295},
            1e15,
            ["x: Invalid value: 1e+15: x in body should be less than or equal to 4.294967295e+09"],
            id="a limit is a float where the value is one",
        ),
        pytest.param({"type": "number", "minimum": 0.5}, 0, [], id="an integer is compared without the fraction"),
        pytest.param({"type": "number"}, 1, [], id="integer as number"),
        pytest.param(
            {"type": "boolean"},
            1,
            ['x: Invalid value: "integer": x in body must be of type boolean: "integer"'],
            id="no boolean",
        ),
        pytest.param(
            {"type": "string"}, None, ['x: Invalid value: "null": x in body must be of type string: "null"'], id="null"
        ),
        pytest.param({"type": "string", "nullable": True}, None, [], id="nullable"),
        pytest.param({"x-kubernetes-int-or-string": True}, "1", [], id="int or string"),
        pytest.param({"type": "string", "maxLength": 1}, "äb", ["x: Too long: may not be more than 1 byte"], id="long"),
        pytest.param(
            {"type": "string", "minLength": 3},
            "ab",
            ['x: Invalid value: "ab": x in body should be at least 3 chars long'],
            id="short",
        ),
        pytest.param(
            {"type": "string", "pattern": "^a$"},
            "b",
            ["x: Invalid value: \"b\": x in body should match '^a$'"],
            id="pattern",
        ),
        pytest.param(
            {"type": "string", "enum": ["a"]}, "b", ['x: Unsupported value: "b": supported values: "a"'], id="enum"
        ),
        pytest.param(
            {"type": "integer", "enum": [1, 2]},
            3,
            ['x: Unsupported value: 3: supported values: "1", "2"'],
            id="enum of numbers",
        ),
        pytest.param(
            {"type": "integer", "multipleOf": 5},
            7,
            ["x: Invalid value: 7: x in body should be a multiple of 5"],
            id="multiple",
        ),
        pytest.param(
            {"type": "number", "multipleOf": 0.5},
            2,
            ["x: Invalid value: 0: factor MultipleOf declared for x must be positive: 0"],
            id="multiple of a fraction, as an integer",
        ),
        pytest.param({"type": "number", "multipleOf": 0.5}, 2.5, [], id="multiple of a fraction"),
        pytest.param(
            {"type": "number", "multipleOf": 0.5},
            1e16 * 1.5,
            ["x: Invalid value: 1.5e+16: x in body should be a multiple of 0.5"],
            id="multiple that JSON does not know exactly",
        ),
        pytest.param({"type": "number", "enum": [1, 2]}, 1.5, [], id="enum of integers, without the fraction"),
        pytest.param(
            {"type": "number", "maximum": 1, "exclusiveMaximum": True},
            1,
            ["x: Invalid value: 1: x in body should be less than 1"],
            id="exclusive",
        ),
        pytest.param(
            {"type": "integer", "format": "int32"},
            1 << 31,
            ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x'],
            id="int32",
        ),
        pytest.param(
            {"type": "array", "items": INTEGER, "minItems": 2},
            [1],
            ["x: Invalid value: 1: x in body should have at least 2 items"],
            id="few items",
        ),
        pytest.param(
            {"type": "object", "maxProperties": 1},
            {"a": 1, "b": 2},
            ["x: Too many: 2: must have at most 1 item"],
            id="many properties",
        ),
        pytest.param(
            {"type": "object", "additionalProperties": INTEGER},
            {"a": "b"},
            ['x.a: Invalid value: "string": x.a in body must be of type integer: "string"'],
            id="map",
        ),
        pytest.param({"type": "object", "required": ["a"]}, {}, ["x.a: Required value"], id="required"),
        pytest.param(
            {"type": "string", "format": "ipv4"},
            "1.2.3",
            ['x: Invalid value: "1.2.3": x in body must be of type ipv4: "1.2.3"'],
            id="format",
        ),
        pytest.param({"type": "string", "format": "of my own"}, "1.2.3", [], id="unknown format"),
        pytest.param(
            {"not": {"required": ["a"]}, "type": "object"},
            {"a": 1},
            ['<nil>: Invalid value: "": "x" must not validate the schema (not)'],
            id="not",
        ),
        pytest.param(
            {"oneOf": [{"minimum": 1}, {"minimum": 2}], "type": "integer"},
            3,
            ['<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
            id="two of one",
        ),
        pytest.param(
            {"allOf": [{"minimum": 5}], "type": "integer"},
            3,
            [
                "x: Invalid value: 3: x in body should be greater than or equal to 5",
                '<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated',
            ],
            id="all",
        ),
    ],
)
def test_texts(schema, value, expected):
    assert texts(schema, value) == expected


def test_invalid_values_of_the_old_object_are_accepted():
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 1}, "b": INTEGER}}
    assert texts(schema, {"a": 2, "b": 1}, {"a": 2, "b": 0}) == []
    assert len(texts(schema, {"a": 3}, {"a": 2})) == 1
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}
    items = {"type": "array", "items": schema}
    old, new = [{"b": 1, "a": 5}], [{"b": 0, "a": 0}, {"b": 1, "a": 5}]
    assert texts({**items, **keyed}, new, old) == []
    assert len(texts(items, new, old)) == 1


SCHEMA = structural(
    {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "integer", "default": 1}}, "default": {}},
            "list": {
                "type": "array",
                "items": {"type": "object", "properties": {"c": {"type": "string", "default": "d"}}},
            },
            "open": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"e": {"type": "object"}},
            },
            "inner": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "maybe": {"type": "string", "nullable": True},
        },
    }
)


def test_pruning_returns_the_removed_fields():
    doc = {
        "kind": "K",
        "x": 1,
        "a": {"b": 2, "y": 1},
        "list": [{"c": "c"}, {"z": 1}],
        "open": {"any": {"thing": 1}, "e": {"gone": 1}},
        "inner": {"metadata": {"name": "n"}, "spec": 1},
    }
    assert shape.prune(SCHEMA, doc, root=True) == ["a.y", "list[1].z", "open.e.gone", "x"]
    assert doc == {
        "kind": "K",
        "a": {"b": 2},
        "list": [{"c": "c"}, {}],
        "open": {"any": {"thing": 1}, "e": {}},
        "inner": {"metadata": {"name": "n"}, "spec": 1},
    }


def test_alternatives_are_validated_also_for_unchanged_values():
    short, long = {"properties": {"a": {"maxLength": 1}}}, {"properties": {"b": {"minLength": 3}}}
    old = {"a": "long", "b": "x"}
    both = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert texts({**both, "allOf": [short]}, old, old) == []
    refused = "x.a: Too long: may not be more than 1 byte"
    assert refused in texts({**both, "allOf": [short]}, {**old, "b": "y"}, old)
    assert refused in texts({**both, "oneOf": [short, long]}, {**old, "b": "y"}, old)
    assert texts({**both, "oneOf": [short, long]}, {"b": "x"}, old) == []
    assert len(texts({**both, "anyOf": [short, long]}, {**old, "b": "y"}, old)) == 2
    assert texts({**both, "not": long}, {"b": "x", "a": "y"}, old) == []


def test_of_old_items_with_the_same_key_the_first_is_compared():
    item = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "minimum": 0}}}
    rule = {"rule": "self.v >= 0", "message": "negative"}
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = {"type": "array", **keys, "items": {**item, "x-kubernetes-validations": [rule]}}
    first, second = {"k": "a", "v": -1}, {"k": "a", "v": 2}
    old, new = [first, second], [first, {"k": "b", "v": 1}]
    assert texts(schema, new, old) == []
    assert len(texts(schema, new, [second, first])) == 1
    rules = rules_of(structural(schema))
    assert rules.check(new, old) == [] and rules.warnings(new, old) == ["[0]: Invalid value: negative"]
    assert len(rules.check(new, [second, first])) == 1
    assert texts({**schema, "maxItems": 1}, [first, first], [first, second]) == []


@pytest.mark.parametrize("keys", [["k"], ["k", "j"]])
@pytest.mark.parametrize("more", [{}, {"k": None}, {"k": []}])
def test_items_that_lack_a_key_are_compared_with_none(keys, more):
    item = {"type": "object", "properties": {"v": {"type": "integer", "minimum": 0}}}
    rule = {"rule": "self.v >= 0", "message": "negative"}
    items = {**item, "x-kubernetes-validations": [rule]}
    schema = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": items}
    value = [{"j": 1, "v": -1, **more}]
    assert len(texts(schema, value, value)) == 1
    assert len(texts({**schema, "maxItems": 0, "items": {"type": "object"}}, value, value)) == 1
    rules = rules_of(structural(schema))
    assert len(rules.check(value, value)) == 1 and rules.warnings(value, value) == []


def test_limits_and_choices_beyond_64_bits_are_compared_as_floats():
    wide = 9223372036854776000  # how the server writes 2 ** 63
    schema = {"type": "number", "minimum": wide, "maximum": wide, "enum": [wide]}
    assert texts(schema, 2.0**63) == []
    assert len(texts(schema, 5)) == 2


def test_defaults_and_nulls():
    doc = {"list": [{}, {"c": None}], "maybe": None, "a": None}
    shape.drop_nulls(SCHEMA, doc)
    shape.fill(SCHEMA, doc)
    assert doc == {"list": [{"c": "d"}, {"c": "d"}], "maybe": None, "a": {"b": 1}}


values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", "c", "list", "open"]), inner)
    ),
    max_leaves=8,
)


@given(values)
def test_pruning_and_defaulting_again_changes_nothing(value):
    doc = {name: copy.deepcopy(value) for name in ("a", "open", "b")} | {"list": [copy.deepcopy(value)]}
    shape.prune(SCHEMA, doc, root=True)
    shape.drop_nulls(SCHEMA, doc)
    shape.fill(SCHEMA, doc)
    again = copy.deepcopy(doc)
    assert shape.prune(SCHEMA, again, root=True) == []
    shape.drop_nulls(SCHEMA, again)
    shape.fill(SCHEMA, again)
    assert again == doc


def test_lists_that_are_sets_or_maps_hold_nothing_twice():
    schema = structural(
        {
            "properties": {
                "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "map": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object"},
                },
            }
        }
    )
    found = repeated(schema, {"set": ["a", "b", "a", "a"], "map": [{"k": 1}, {"k": 1, "x": 2}, {}]})
    assert [(error.field, error.message) for error in found] == [
        ("set[2]", 'Duplicate value: "a"'),
        ("map[1]", 'Duplicate value: {"k":1}'),
    ]


@pytest.mark.parametrize(
    ("format_", "good", "bad"),
    [
        ("date-time", "2024-01-02T03:04:05Z", "2024-01-02"),
        ("date-time", "2024-01-02t03:04:05.5+25:00", "2024-01-02 03:04:05+00:00"),
        ("date-time", "2024-01-02T23:59:59z", "2024-01-02T24:00:00Z"),
        ("date-time", "2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z"),
        ("date", "2024-01-02", "2024-1-2"),
        ("duration", "1h30m", "1 fortnight"),
        ("duration", "1.5 days", "3 hrs"),
        ("duration", "7 secondss", "10mo"),
        ("byte", "eA==", ""),
        ("mac", "001122334455", "00112233445566"),
        ("email", "a@b.test", "a"),
        ("hostname", "a.test", "a_."),
        ("ipv6", "::1", "1.2.3.4"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("cidr", "010.0.0.0/08", "10.0.0.0/255.0.0.0"),
        ("cidr", "::/0", "fe80::1%eth0/64"),
        ("cidr", "::ffff:1.2.3.4/96", "10.0.0.0/33"),
        ("ipv4", "010.0.0.1", "10.0.0.1%a"),
        ("ipv4", "::ffff:1.2.3.4", "::1"),
        ("ipv6", "::ffff:1.2.3.4", "fe80::1%eth0"),
        ("mac", "01:02:03:04:05:06", "01:02"),
        ("uuid", "12345678-1234-1234-1234-123456789abc", "1234"),
        ("byte", "YQ==", "a"),
        ("uri", "https://a.test/b", "a b"),
        ("hexcolor", "#aabbcc", "#a"),
        ("isbn", "978-0321751041", "978-0321751042"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("k8s-short-name", "a-b", "a-"),
        ("k8s-short-name", "a" * 63, "a" * 64),
        ("k8s-long-name", "a.b-c", "a..b"),
        ("k8s-long-name", "a" * 253, "a" * 254),
    ],
)
def test_formats(format_, good, bad):
    check = check_of(format_)
    assert recognized(format_, "string") and check(good) and not check(bad)


FORMATS = (
    *("bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5"),
    *("isbn", "isbn10", "isbn13", "creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration"),
    *("date-time", "k8s-short-name", "k8s-long-name"),
)
digits = st.text("0123456789-٣²:./X ")


@given(st.sampled_from(FORMATS), st.text() | digits)
def test_any_string_can_be_validated(format_, text):
    assert check_of(format_)(text) in (True, False)


@pytest.mark.parametrize(
    ("format_", "text"), [("ssn", "٣٣٣-٣٣-٣٣٣٣"), ("creditcard", "٤" * 16), ("cidr", "10.0.0.0/٣"), ("isbn", "٣" * 10)]
)
def test_digits_are_ascii(format_, text):
    assert not check_of(format_)(text)
