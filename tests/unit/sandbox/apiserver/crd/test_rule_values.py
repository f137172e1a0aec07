"""Rules on values whose JSON differs from their CEL value, as on a kube-apiserver."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.crd.rules import rules_of
from kcm_cli.sandbox.apiserver.crd.structural import structural

Tree = dict[str, Any]
PROPERTIES = {
    "text": {"type": "string"},
    "nul": {"type": "string", "nullable": True},
    "bytes": {"type": "string", "format": "byte"},
    "time": {"type": "string", "format": "date-time"},
    "wait": {"type": "string", "format": "duration"},
    "number": {"type": "number"},
    "either": {"x-kubernetes-int-or-string": True},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    "keyed": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
    },
    "map": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
}
VALUE = {
    "text": "hello",
    "nul": None,
    "bytes": "aGk=",
    "time": "2020-02-03T04:05:06Z",
    "wait": "90s",
    "number": 2,
    "either": 5,
    "map": {"k": None},
    "set": ["a", "b"],
    "keyed": [{"k": "a", "v": 1}, {"k": "b", "v": 2}],
}


def judged(rule: str) -> list[str]:
    schema = {"type": "object", "properties": PROPERTIES, "x-kubernetes-validations": [{"rule": rule}]}
    rules = rules_of(structural(schema))
    assert rules is not None
    return [error.message for error in rules.check(VALUE, None)]


@pytest.mark.parametrize(
    "rule",
    [
        "!has(self.nul)",
        "'k' in self.map",
        "self.bytes == b'hi'",
        "string(self.bytes) == 'hi'",
        "self.time.getFullYear() == 2020",
        "self.wait == duration('90s')",
        "self.number == 2.0",
        "self.either == 5",
        "self.set == ['b', 'a']",
        "['b', 'a'] != self.set",
        "self.set != ['a', 'c']",
        "self.set + ['b', 'c'] == ['a', 'b', 'c']",
        "self.set + ['c'] == ['c', 'b', 'a']",
        "self.keyed == [self.keyed[1], self.keyed[0]]",
        "(self.keyed + self.keyed).size() == 2",
        "'%s is %d'.format([self.text, 3]) == 'hello is 3'",
    ],
)
def test_rules_that_hold(rule: str) -> None:
    assert judged(rule) == []


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("self.nul == 'x'", "no such key: nul"),
        ("int(self.text) == 1", "type conversion error from 'string' to 'int'"),
        ("duration(self.text) > duration('1s')", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(self.text) > self.time", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
    ],
)
def test_rules_that_fail(rule: str, problem: str) -> None:
    assert judged(rule) == [f'Invalid value: "object": {problem} evaluating rule: {rule}']


COSTLY = "self.l.all(x, self.l.all(y, self.l.all(z, x != 'zz' || y != z)))"


def costed(*rules: Tree, size: int, text: str = "a") -> list[str]:
    schema = {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": list(rules),
    }
    found = rules_of(structural(schema))
    assert found is not None
    return [error.message for error in found.check({"l": [text] * size}, None)]


def test_a_rule_that_costs_too_much_ends_all_rules():
    why = "no further validation rules will be run due to call cost exceeds limit for rule: " + COSTLY
    problem = f"Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': {why}"
    assert costed({"rule": COSTLY}, {"rule": "false"}, size=60) == [problem]
    assert costed({"rule": COSTLY}, {"rule": "false", "message": "no"}, size=3) == ["Invalid value: no"]


def test_a_message_that_costs_too_much_ends_all_rules():
    text = f"{COSTLY} ? 'a' : 'b'"
    why = f'no further validation rules will be run due to call cost exceeds limit for messageExpression: "{text}"'
    found = costed({"rule": "false", "messageExpression": text}, {"rule": "false"}, size=60)
    assert found == [f'Invalid value: "object": {why}']


def test_rules_share_a_budget():
    """20 times 562,500 are more than 10,000,000."""
    rule = {"rule": "self.l[0].contains(self.l[0])"}
    why = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert costed(*[rule] * 20, {"rule": "false"}, size=1, text="x" * 7_500) == [f'Invalid value: "object": {why}']
    assert costed(*[rule] * 10, {"rule": "false", "message": "no"}, size=1, text="x" * 7_500) == ["Invalid value: no"]
