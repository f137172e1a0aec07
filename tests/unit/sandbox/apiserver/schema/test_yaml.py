"""YAML bodies: the values of scalars, and errors, as recorded from a kube-apiserver."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.schema import yaml_body
from kcm_cli.sandbox.apiserver.schema.gojson import MAX_DEPTH

LONG = "9" * 5000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("---\n", None),
        (
            "{a: y, b: NO, c: On, d: tRue, e: ~, f: }",
            {"a": True, "b": False, "c": True, "d": "tRue", "e": None, "f": None},
        ),
        (
            "[0x1F, +0x1F, -0b11, 0o7, 017, 08, 0b102, 0xG, 1_000, _1]",
            [31, 31, -3, 7, 15, 8, "0b102", "0xG", 1000, "_1"],
        ),
        (f"[{LONG}, -{LONG}, 1{LONG}, 0{LONG}]", [LONG, f"-{LONG}", f"1{LONG}", f"0{LONG}"]),
        ("[.5, 1., 1.e3, 1E5, 1e400, 1e-400, ., +, -]", [0.5, 1, 1000, 100000, "1e400", 0, ".", "+", "-"]),
        ("[9223372036854775807, 18446744073709551616]", [2**63 - 1, 18446744073709552000]),
        ("[2030-01-01, 12:30:45, 2030-01-01T00:00:00Z]", ["2030-01-01", "12:30:45", "2030-01-01T00:00:00Z"]),
        ("[!!str 1, !!int '1', !!float 1, !!binary AAEC, !odd x]", ["1", 1, 1, "\0\x01\x02", "x"]),
        ("[!!set {a: }, !!seq {}, !!map [], !!omap [a: b]]", [{"a": None}, {}, [], [{"a": "b"}]]),
        ("{1: a, 1.5: b, true: c, .inf: d, 0x10: e}", {"1": "a", "1.5": "b", "true": "c", ".inf": "d", "16": "e"}),
        ("{1.23456789: a, 1e300: b, 1e10: c}", {"1.2345679": "a", ".inf": "b", "1e+10": "c"}),
        ("{a: &x {b: 1}, c: {<<: *x, d: 2}, e: *x}", {"a": {"b": 1}, "c": {"b": 1, "d": 2}, "e": {"b": 1}}),
        ("{<<: [{a: 1}, {a: 2, b: 3}]}", {"a": 1, "b": 3}),
        ("a: b\n---\n[", {"a": "b"}),
        ("&x a: &y 1\n*y : *x", {"a": 1, "1": "a"}),
        (f"a: &m {{k: v}}\nb: [{'*m,' * 5000}]", {"a": {"k": "v"}, "b": [{"k": "v"}] * 5000}),
        (f"a: &m [{'v,' * 200}]\nb: [{'*m,' * 199}]", {"a": ["v"] * 200, "b": [["v"] * 200] * 199}),
        (f"a: &m [{'v,' * 500}]\nb: [{'*m,' * 100}]", {"a": ["v"] * 500, "b": [["v"] * 500] * 100}),
    ],
)
def test_reads(text: str, value: object) -> None:
    found, repeated = yaml_body.load(text.encode())
    assert (json.dumps(found), repeated) == (json.dumps(value), [])


_LAYERS = (f", {b}: &{b} [{','.join([f'*{a}'] * 8)}]" for a, b in ("ab", "bc", "cd", "de"))
BOMB = "{a: &a [x,x,x,x,x,x,x,x]" + "".join(_LAYERS) + "}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n{a: b: c}", "yaml: line 1: did not find expected ',' or '}'"),
        ("%YAML 2.0\n---\n{}", "yaml: found incompatible YAML document"),
        ("a:\n\tb: c", "yaml: line 2: found character that cannot start any token"),
        ("\n'", "yaml: line 2: found unexpected end of stream"),
        ("a: *b", "yaml: unknown anchor 'b' referenced"),
        ("&a [*a]", "yaml: anchor 'a' value contains itself"),
        ("{~: d}", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "d"'),
        ("{[a]: b}", 'yaml: invalid map key: []interface {}{"a"}'),
        ("{<<: 1}", "yaml: map merge requires map or sequence of maps as the value"),
        ("!!int a", "yaml: cannot decode !!str `a` as a !!int"),
        ("!!bool 1", "yaml: cannot decode !!int `1` as a !!bool"),
        ("!!binary é", "yaml: !!binary value contains invalid base64 data"),
        ("[.inf]", "json: unsupported value: +Inf"),
        ("[.NaN]", "json: unsupported value: NaN"),
        ('"a\\/b"', "yaml: found unknown escape character"),
        ('- a\\/b\n- "/\\\\/"\n- "a\n\\/"', "yaml: line 4: found unknown escape character"),
        ('"a\0"', "yaml: control characters are not allowed"),
        (BOMB, "yaml: document contains excessive aliasing"),
        ("\n" + "[" * (MAX_DEPTH + 1), f"yaml: line 2: exceeded max depth of {MAX_DEPTH}"),
        ("[" * 100_000, f"yaml: exceeded max depth of {MAX_DEPTH}"),
        (
            "- x\n" * 9_000 + "\n".join(f"- &a{i} [{f'*a{i - 1}' if i else ''}]" for i in range(300)),
            f"exceeded max depth of {MAX_DEPTH}",
        ),
    ],
)
def test_refuses(text: str, words: str) -> None:
    with pytest.raises(yaml_body.YamlError) as caught:
        yaml_body.load(text.encode())
    assert str(caught.value).endswith(words)


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(yaml_body.YamlError, match="^yaml: invalid leading UTF-8 octet$"):
        yaml_body.load(b"a: \xff")


def test_repeated_keys_are_noted_where_they_are() -> None:
    text = b"a: 1\nb: {c: 1,\n  c: 2}\na:\n- 2\n"
    assert yaml_body.load(text) == (
        {"a": [2], "b": {"c": 2}},
        ['line 3: key "c" already set in map', 'line 4: key "a" already set in map'],
    )
    repeated = yaml_body.load(b"1: a\n1: b\nno: a\nno: b\n")[1]
    assert repeated == ["line 2: key 1 already set in map", "line 4: key false already set in map"]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8", categories=["L", "P"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_json_is_yaml(value: object) -> None:
    assert yaml_body.load(json.dumps(value, ensure_ascii=False).encode()) == (value, [])
