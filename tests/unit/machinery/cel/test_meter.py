"""The runtime cost of expressions, as cel-go counts it with Kubernetes' libraries."""

import pytest

from kcm_cli.machinery.cel import CelCancelled, CelError, Program

VALUES = {
    "s": "hello world, this is a text",
    "l": ["a", "bb", "ccc", "dddd"],
    "n": 5,
    "m": {"k": "v", "q": "w"},
    "b": True,
    "d": {"a": {"b": [1, 2, 3]}, "n": 7},
}
COSTS = {
    "1": 0,
    "d.a.b[n - 5]": 6,
    "m[s.substring(0,0) + 'k']": 7,
    "s == s": 5,
    "s + s": 8,
    "s in l": 6,
    "n in [1,2,3]": 1,
    "n in [1, n]": 14,
    "has(d.a.b)": 2,
    "has({'a':n}.a)": 32,
    "b || b": 1,
    "b && !b": 3,
    "b ? n : 1": 1,
    "b ? d.a.b : n": 3,
    "b ? has(d.a) : b": 2,
    "b ? s + s : s": 9,
    "(b ? l : l)[0]": 2,
    "[[1],[n]]": 21,
    "{'a': n, 'b': 2}": 31,
    "l.map(x, {'v': x})[0].v": 177,
    "s.matches('^(hello|world).*text$') && s.contains('this')": 23,
    "l.join(',')": 4,
    "s.indexOf('o')": 3,
    "int('5')": 0,
    "bytes(s)": 4,
    "l.all(x, true)": 14,
    "l.exists(x, false)": 18,
    "l.exists_one(x, x == 'bb')": 13,
    "l.filter(x, x != 'a')": 49,
    "l.map(x, x + 'a')": 58,
    "l.map(x, x != 'a', x + 'b')": 52,
    "m.all(k, m[k] != 'z')": 14,
    "m.transformMap(k, v, v + 'x')": 12,
    "m.transformMapEntry(k, v, v != 'v', {v: k})": 40,
    "l.map(x, l.map(y, x + y))": 298,
    "l.sortBy(x, x.size())": 103,
    "[1,2,3,4].sort()": 43,
    "[[1,2],[3]].flatten(2)": 15,
    "lists.range(10)": 21,
    "sets.intersects(l, ['a'])": 6,
    "d.a.b.sum()": 6,
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')": 6,
    "cidr('::/0').containsIP('::1')": 2,
    "format.qualifiedName().validate('abc')": 16,
    "quantity('1Gi').isGreaterThan(quantity('1Mi'))": 3,
    "optional.of(s).or(optional.of(s)).value()": 3,
    "optional.none().orValue(s)": 2,
    "d.?a.optMap(x, x.b)": 9,
    "optional.none().optMap(x, x)": 3,
    "'%s is %d'.format([s, n])": 13,
}


@pytest.mark.parametrize(("text", "cost"), COSTS.items())
def test_costs(text: str, cost: int) -> None:
    program = Program(text)
    program.evaluate(VALUES)
    assert program.cost == cost


CUBIC = "l.all(x, l.all(y, l.all(z, x >= 0)))"


@pytest.mark.parametrize("text", [CUBIC, f"{CUBIC} || true", f"false && b || {CUBIC}", "s.matches(s)"])
def test_expensive_expressions_are_cancelled(text: str) -> None:
    with pytest.raises(CelCancelled, match="operation cancelled: actual cost limit exceeded"):
        Program(text).evaluate({"l": list(range(150)), "s": "a" * 10_000, "b": True})


def test_skipped_branches_cost_nothing() -> None:
    assert Program(f"true || {CUBIC}").evaluate({"l": list(range(150))}) is True


def test_each_run_is_counted_from_the_start() -> None:
    program = Program("l.size() / n")
    for _ in range(2):
        assert program.evaluate({"l": [1, 2], "n": 1}) == 2
        assert program.cost == 4
    with pytest.raises(CelError):
        program.evaluate({"l": [1], "n": 0})
