"""Any text is an expression or no expression, and any expression has a value or an error."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kcm_cli.machinery.cel import CelError, CelSyntaxError, Program
from kcm_cli.machinery.cel.functions import FUNCTIONS

OBJECT = {"a": "1", "n": 3, "list": [1, "x", None, {}], "map": {"k": 1.5, "": True}, "time": "2030-01-01T00:00:00Z"}
NAMES = tuple(dict.fromkeys(name.rpartition(".")[2] for name in FUNCTIONS))
WORDS = (
    *(
        "object",
        "object.a",
        "object.n",
        "object.list",
        "object.map",
        "x",
        "1",
        "0",
        "-1",
        "1.5",
        "1u",
        "0xfu",
        "9" * 19,
    ),
    *(
        "'a'",
        "''",
        "'1'",
        "b'a'",
        "r'\\'",
        "'2030-01-01T00:00:00Z'",
        "'1h'",
        "'1Gi'",
        "'10.0.0.1'",
        "'1.2.3'",
        "'('",
        "'%'",
    ),
    *(
        "true",
        "null",
        "[]",
        "{}",
        "[1]",
        "{'a': 1}",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ":",
        "?",
        "+",
        "-",
        "*",
        "/",
        "%",
    ),
    *(
        "==",
        "!=",
        "<",
        ">=",
        "&&",
        "||",
        "!",
        "in",
        "has",
        "e",
        "'%s%d%x%e%b'",
        "'Europe/Paris'",
        "'99999:99'",
        "1e308",
        "1e999",
    ),
)
words = st.sampled_from((*WORDS, *NAMES))
texts = st.lists(words, max_size=12).map(" ".join) | st.lists(words, max_size=12).map("".join) | st.text()
values = st.sampled_from([word for word in WORDS if word[0] in "o1-09'b[{tn"])
calls = st.recursive(
    values,
    lambda inner: st.one_of(
        st.builds("{}({})".format, st.sampled_from(sorted(FUNCTIONS)), st.lists(inner, max_size=3).map(", ".join)),
        st.builds("({}).{}({})".format, inner, st.sampled_from(NAMES), st.lists(inner, max_size=3).map(", ".join)),
        st.builds(
            "({}) {} ({})".format, inner, st.sampled_from(["+", "-", "*", "/", "%", "==", "<", "in", "&&"]), inner
        ),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({}).map(v, {})".format, inner, inner),
    ),
    max_leaves=6,
)


@settings(max_examples=400)
@given(texts | calls)
@example("1" * 5000)
@example("'\\U7fffffff'")
@example("(" * 5000)
@example("[" * 300 + "]" * 300)
@example("!" * 5000 + "true")
@example("-" * 5000 + "1")
@example("+".join(["1"] * 5000))
@example("a" + ".b" * 5000)
@example("int('" + "1" * 5000 + "')")
@example("uint('" + "1" * 5000 + "')")
@example("timestamp('9999-12-31T23:59:59Z') + duration('9999h')")
@example("timestamp('2030-01-01T00:00:00Z').getHours('" + "9" * 400 + ":00')")
@example("timestamp('2030-01-01T00:00:00Z').getHours('../etc')")
@example("timestamp('2030-01-01T00:00:00Z').getHours('\\x00')")
@example("duration('9999999999h')")
@example("'%.9999999999f'.format([1.0])")
@example("'a'.substring(9223372036854775807)")
@example("'a'.repeat(9223372036854775807)")
@example("quantity('1e99999999')")
@example("quantity('9E').asInteger()")
@example("string(b'\\xff')")
@example("lists.range(9223372036854775807)")
def test_any_expression_has_a_value_or_an_error(text: str) -> None:
    try:
        program = Program(text)
    except CelSyntaxError:
        return
    try:
        program.evaluate({"object": OBJECT})
    except CelError:
        pass


@pytest.mark.parametrize("text", ["int(' 1')", "int('1_0')", "int('٣')", "uint('+1')", "double('1_0')", "double('٣')"])
def test_numbers_are_parsed_as_in_go(text: str) -> None:
    with pytest.raises(CelError, match="type conversion error"):
        Program(text).evaluate({})
