"""Rules on values that JSON writes otherwise than CEL sees them, as a real server judges them."""

import pytest

from kcm_cli.sandbox.apiserver.crd.rules import rules_of
from kcm_cli.sandbox.apiserver.crd.structural import structural

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
    ("rule", "told"),
    [
        ("self.nul == 'x'", "no such key: nul"),
        ("int(self.text) == 1", "type conversion error from 'string' to 'int'"),
        ("duration(self.text) > duration('1s')", "type conversion error from 'string' to 'google.protobuf.Duration'"),
        ("timestamp(self.text) > self.time", "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
    ],
)
def test_rules_that_fail(rule: str, told: str) -> None:
    assert judged(rule) == [f'Invalid value: "object": {told} evaluating rule: {rule}']
