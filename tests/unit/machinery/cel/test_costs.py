"""Estimated costs of expressions; the sums are from errors of a kube-apiserver."""

import pytest

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.cost_functions import MOST, scaled
from kcm_cli.machinery.cel.costs import most_cost
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.types import BOOL, INT, STRING, TIMESTAMP, list_of, map_of

FIELDS = {
    "a": STRING,
    "s": STRING,
    "n": INT,
    "b": BOOL,
    "t": TIMESTAMP,
    "l": list_of(STRING),
    "i": list_of(INT),
    "ll": list_of(list_of(STRING)),
    "m": map_of(STRING, STRING),
}
SIZES = {"a": 1000, "s": 10, "t": 32, "l": 100, "i": 100, "ll": 10, "m": 50}
ITEMS = {"l": 20, "m": 30, "ll": 5}


def size_of(path: tuple[str, ...]) -> int | None:
    if len(path) == 1:
        return 0
    if len(path) == 2:
        return SIZES.get(path[1], 0)
    return 0 if path[2] == "@keys" else ITEMS.get(path[1], 0) if len(path) == 3 else 7


def cost(text: str) -> int:
    node = parse(text)
    environment = cel.Environment({"self": cel.Type("selfType")}, {"selfType": FIELDS}.get)
    return most_cost(node, cel.check(text, node, environment), size_of)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", 0),
        ("self.n == 1", 2),
        ("self.n > 1", 3),
        ("self.b && self.n > 1", 5),
        ("self.b ? self.n : self.n + 1", 2 + 3),
        ("has(self.a)", 1),
        ("self.a == self.s", 4 + 1),
        ("self.a == 'xyz'", 2 + 1),
        ("self.a + self.s == 'x'", 4 + 101 + 1),
        ("self.a.size() > 3", 2 + 1 + 1),
        ("self.a.startsWith(self.s)", 4 + 1),
        ("self.a.contains(self.s)", 4 + 100 * 1),
        ("self.a.matches('[a-z]*')", 2 + 101 * 2),
        ("self.a.lowerAscii() == 'x'", 2 + 100 + 1),
        ("self.a.replace('a', 'b') == 'x'", 2 + 200 + 1),
        ("self.a.split(',').size() > 1", 2 + 200 + 1 + 1),
        ("self.l.join() == 'x'", 2 + 200 + 1),
        ("self.l.join(self.s) == 'x'", 3 + 299 + 1 + 1),
        ("self.a.split(',').join('') == 'x'", 2 + 200 + scaled(MOST) + 1),
        ("self.s in self.l", 4 + 100),
        ("self.s in self.m", 4 + 1),
        ("self.l[0] == 'x'", 2 + 1 + 1),
        ("self.m['k'] == 'x'", 2 + 1 + 1),
        ("self.l.isSorted()", 2 + 100 * 3),
        ("self.i.sum() > 1", 2 + 100 + 1),
        ("['a', 'b'].size() == 2", 10 + 1 + 1),
        ("{'a': 1}.size() == 2", 30 + 1 + 1),
        ("self.l.all(x, x == 'a')", 2 + 1 + 100 * (3 + 1 + 1)),
        ("self.l.exists(x, x == 'a')", 2 + 1 + 100 * (4 + 2)),
        ("self.l.exists_one(x, x == 'a')", 2 + 2 + 100 * (2 + 2)),
        ("self.i.map(x, x + 1).size() > 1", 2 + 11 + 100 * 14 + 2),
        ("self.i.filter(x, x > 1).size() > 1", 2 + 11 + 100 * (2 + 13) + 2),
        ("self.m.transformMap(k, v, v).size() > 1", 2 + 31 + 50 * (3 + 1) + 2),
        ("self.m.transformMap(k, v, v == 'x', v).size() > 1", 2 + 31 + 50 * (2 + 3 + 1) + 2),
        ("self.m.transformMapEntry(k, v, {v: k}).size() > 1", 2 + 31 + 50 * (2 + 30 + 2) + 2),
        ("self.l.all(x, self.l.all(y, x == y))", 2 + 1 + 100 * (3 + (2 + 1 + 100 * (3 + 2 + 2)))),
        ("self.ll.all(x, x.isSorted())", 2 + 1 + 10 * (3 + 1 + 5 * 2)),
        ("quantity(self.a).isGreaterThan(quantity('1'))", 2 + 100 + 1 + 1),
        ("url(self.a).getHost().matches('[a-z]*')", 2 + 100 + 1 + 101 * 2),
        ("url(self.a).getEscapedPath().matches('[a-z]*')", 2 + 100 + 1 + 301 * 2),
        ("sets.contains(self.l, self.l)", 4 + 100 * 100 + 1),
        ("string(self.n) == 'x'", 2 + 1 + 1),
        # Items of a function's result have the size of the root, here 0.
        ("self.s.split('.').all(x, x.lowerAscii() == 'a')", 2 + 2 + 1 + 10 * (3 + 1)),
        ("'n is ' + string(self.n)", scaled(MOST) + 3),
    ],
)
def test_the_most_that_an_expression_costs(text: str, expected: int) -> None:
    assert cost(text) == expected
