"""Type checks: the type of an expression, and errors."""

from collections.abc import Callable

import pytest

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.types import BOOL, DYN, INT, STRING, list_of, map_of
from tests.kit.growth import grows_linearly

FIELDS = {"n": INT, "s": STRING, "list": list_of(STRING), "map": map_of(STRING, INT), "child": cel.Type("child")}
OBJECTS = {"self": FIELDS, "child": {"b": BOOL}}
ENVIRONMENT = cel.Environment({"self": cel.Type("self"), "d": DYN}, OBJECTS.get)

GIVES = {
    "1": "int",
    "1u": "uint",
    "1.0": "double",
    "b'x'": "bytes",
    "null": "null",
    "self": "self",
    "self.child.b": "bool",
    "self.map['a'] + 1": "int",
    "self.list[0]": "string",
    "self.list.map(x, size(x))": "list(int)",
    "self.list.map(x, x == 'a', size(x))": "list(int)",
    "self.list.filter(x, x == 'a')": "list(string)",
    "self.map.filter(k, k == 'a')": "list(string)",
    "self.list.all(x, x.startsWith('a'))": "bool",
    "self.list.exists_one(x, x == 'a')": "bool",
    "self.map.all(k, v, k == 'a' && v == 1)": "bool",
    "self.list.transformMap(i, x, i)": "map(int, int)",
    "self.map.transformMapEntry(k, v, {v: k})": "map(int, string)",
    "self.list.sortBy(x, size(x))": "list(string)",
    "self.?n.orValue(3)": "int",
    "self.?n": "optional_type(int)",
    "self.?child.b": "optional_type(bool)",
    "optional.of(1).optMap(x, string(x))": "optional_type(string)",
    "optional.of(1).optFlatMap(x, optional.of(string(x)))": "optional_type(string)",
    "has(self.n)": "bool",
    "d.anything.goes": "dyn",
    "d + 1": "int",
    "d + d": "dyn",
    "d.map(x, x)": "list(dyn)",
    "[]": "list(dyn)",
    "[] + [1]": "list(int)",
    "{}": "map(dyn, dyn)",
    "{'a': [1]}": "map(string, list(int))",
    "[1].map(x, [x])[0]": "list(int)",
    "true ? self.n : 2": "int",
    "type(1) == int": "bool",
    "google.protobuf.Timestamp": "type(timestamp)",
    "timestamp('2030-01-01T00:00:00Z') - duration('1h')": "timestamp",
    "self.child == null": "bool",
    "1 < 2.0": "bool",
    "url('https://x').getQuery()": "map(string, list(string))",
    "ip('1.2.3.4').family()": "int",
    "cidr('10.0.0.0/8').ip()": "net.IP",
    "quantity('1').add(2)": "kubernetes.Quantity",
    "format.named('x').value().validate('y')": "optional_type(list(string))",
    "'%s %d'.format(['a', dyn(1)])": "string",
}
SAYS = {
    "self.m < 9": [(5, "undefined field 'm'")],
    "x.y": [(1, "undeclared reference to 'x' (in container '')")],
    "nothing(1)": [(8, "undeclared reference to 'nothing' (in container '')")],
    "d.nothing(1)": [(10, "undeclared reference to 'nothing' (in container '')")],
    "1 + 'a'": [(3, "found no matching overload for '_+_' applied to '(int, string)'")],
    "self.map < 9": [(10, "found no matching overload for '_<_' applied to '(map(string, int), int)'")],
    "size(1)": [(5, "found no matching overload for 'size' applied to '(int)'")],
    "self.list.sum()": [(14, "found no matching overload for 'sum' applied to 'list(string).()'")],
    "startsWith('a', 'b')": [(11, "found no matching overload for 'startsWith' applied to '(string, string)'")],
    "self.n && true": [(5, "expected type 'bool' but found 'int'")],
    "self.list.all(x, x)": [(18, "expected type 'bool' but found 'string'")],
    "self.list.filter(x, x)": [
        (17, "found no matching overload for '_?_:_' applied to '(string, list(string), list(string))'")
    ],
    "self.n.all(x, true)": [
        (5, "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)")
    ],
    "self.n.foo": [(7, "type 'int' does not support field selection")],
    "ip('::1').foo": [(10, "type 'net.IP' does not support field selection")],
    "quantity('1').foo": [(14, "unexpected failed resolution of 'kubernetes.Quantity'")],
    "[1, 'a']": [(5, "expected type 'int' but found 'string'")],
    "[dyn(1), 2]": [(10, "expected type 'dyn' but found 'int'")],
    "{'a': 1, 'b': 'c'}": [(15, "expected type 'int' but found 'string'")],
    "'%z'.format([1])": [(12, 'could not parse formatting clause: unrecognized formatting clause "z"')],
    "'%s'.format([])": [(12, "index 0 out of range")],
    "'%s'.format([1, 'a'])": [(12, "too many arguments supplied to string.format (expected 1, got 2)")],
    "null == 1": [(6, "found no matching overload for '_==_' applied to '(null, int)'")],
    "true ? 1 : 'a'": [(6, "found no matching overload for '_?_:_' applied to '(bool, int, string)'")],
    "'a'.matches('[')": [(13, "invalid matches argument")],
    "duration('x') == timestamp('y')": [
        (15, "found no matching overload for '_==_' applied to '(duration, timestamp)'")
    ],
    "duration('x')": [(10, "invalid duration argument")],
    "timestamp(1) < timestamp(99999999999999)": [(26, "invalid timestamp argument")],
    "Thing{a: 1}": [(6, "undeclared reference to 'Thing' (in container '')")],
    "child{b: 1}": [(8, "expected type of field 'b' is 'bool' but provided type is 'int'")],
    "jsonpatch.escapeKey('a')": [
        (1, "undeclared reference to 'jsonpatch' (in container '')"),
        (20, "undeclared reference to 'escapeKey' (in container '')"),
    ],
    "self.a + self.b": [(5, "undefined field 'a'"), (14, "undefined field 'b'")],
}


def checked(text: str) -> cel.Checked:
    return cel.check(text, parse(text), ENVIRONMENT)


@pytest.mark.parametrize(("text", "kind"), GIVES.items(), ids=GIVES)
def test_type_of_an_expression(text: str, kind: str) -> None:
    assert str(checked(text).result) == kind


@pytest.mark.parametrize(("text", "problems"), SAYS.items(), ids=SAYS)
def test_errors_and_their_positions(text: str, problems: list[tuple[int, str]]) -> None:
    with pytest.raises(cel.CelTypeError) as raised:
        checked(text)
    lines = [
        f"ERROR: <input>:1:{column}: {message}\n | {text}\n | {'.' * (column - 1)}^" for column, message in problems
    ]
    assert str(raised.value) == "\n".join(lines)


def test_every_node_has_its_type() -> None:
    text = "self.list.map(x, size(x))"
    node = parse(text)
    found = cel.check(text, node, ENVIRONMENT)
    assert found.types[id(node)] == found.result == list_of(INT)
    assert found.types[id(node.range)] == list_of(STRING)  # type: ignore[union-attr]


def test_wide_characters_are_marked_by_wide_marks() -> None:
    text = "'é' + 1"
    with pytest.raises(cel.CelTypeError) as raised:
        checked(text)
    assert str(raised.value).splitlines()[-1] == " | .\uff0e..^"


DEEP = {
    "sums": "1" + " + 1" * 248,
    "conditions": "true ? 1 : " * 248 + "1",
    "fields": "d" + ".a" * 248,
    "steps": "[1]" + ".map(x, x)" * 248,
    "parentheses": "(" * 200 + "1" + ")" * 200,
    "negations": "!(" * 150 + "true" + ")" * 150,
    "lists": "[" * 150 + "1" + "]" * 150,
    "maps": "{1: " * 150 + "1" + "}" * 150,
    "calls": "dyn(" * 140 + "1" + ")" * 140,
    "indexes": "d[" * 140 + "1" + "]" * 140,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP.keys())
async def test_deep_expressions_are_checked(text: str) -> None:
    checked(text)


def test_a_long_expression_is_checked_in_linear_time() -> None:
    """Each empty list has a type variable."""

    def prepare(size: int) -> Callable[[], object]:
        text = f"[{'[],' * size}[]]"
        return lambda: checked(text)

    assert grows_linearly(prepare, 4_000)
