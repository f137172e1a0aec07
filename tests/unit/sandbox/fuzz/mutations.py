"""What is done to valid requests to make them wrong."""

import copy
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from tests.unit.sandbox.fuzz.objects import places

T = TypeVar("T")
Path = tuple[str | int, ...]


class Tape:
    """Decisions read off bytes: the same bytes, the same decisions; none left, the plainest ones."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, below: int) -> int:
        word = self._data[self._at : self._at + 2]
        self._at += 2
        return int.from_bytes(word) % below

    def one(self, options: Sequence[T]) -> T:
        return options[self.number(len(options))]

    def seldom(self, often: int = 4) -> bool:
        """Once in so many times."""
        return self.number(often) == often - 1


_DEEP = {
    f"@{depth}{opening}": opening * depth + "1" + closing * depth
    for depth in (30, 300, 3000, 30000)
    for opening, closing in (("[", "]"), ('{"a":', "}"))
}
"""What stands for deep nests in documents, and the JSON that is put there in the end."""
TEXTS = (
    *("", " ", "a", "A", "-", ".", "*", "/", "%", "\\", '"', "\0", "\n", "\ud800", "é", "日本", "٣", "²", "\U0001f600"),
    *(
        "a" * 64,
        "a" * 254,
        "a" * 5000,
        "a.b/c",
        "a/b/c",
        "/a",
        "a/",
        "..",
        "../..",
        "~0~2",
        "a,b",
        "a=b",
        "!x",
        "a in (",
    ),
    *("0", "1", "-1", "+1", "01", "1.5", "1e3", "1e9999", "0x1", "1_0", "99999999999999999999", "1" * 5000),
    *(
        "1Gi",
        "-1Gi",
        "1m",
        "1n",
        "0.0000000001",
        "1e-400",
        "9Ei",
        "99999E",
        "1Ki1",
        "NaN",
        "Infinity",
        "nan",
        "50%",
        "-5%",
    ),
    *("1h", "-1s", "1h1", "9999999h", "2030-01-01T00:00:00Z", "2030-01-01T00:00:60Z", "0000-00-00T00:00:00Z"),
    *("2030-01-01", "2030-W01-1", "99999-01-01T00:00:00Z", "2030-01-01T00:00:00.123456789123Z", "0001-01-01T00:00:00Z"),
    *(
        "10.0.0.1",
        "010.0.0.1",
        "::1",
        "::ffff:1.2.3.4",
        "fe80::1%eth0",
        "10.0.0.0/8",
        "10.0.0.1/8",
        "10.0.0.0/99",
        "::/0",
    ),
    *("true", "null", "{}", "[]", "{", "[[", "- a", "a: b", "\ufeff", "e30=", "e30", "====", "é=="),
    *("http://a", "https://[::1", "https://h:99999/p", "//", "http://a b", "mailto:a", "a@b.c"),
    *(
        "* * * * *",
        "*/0 * * * *",
        "0 0 31 2 *",
        "@every 1s",
        "@every -1s",
        "TZ=x * * * * *",
        "60 * * * *",
        "1-0 * * * *",
    ),
    *(
        "object.x",
        "self",
        "1/0",
        "'a'.matches('(')",
        "size(self)",
        "has(x)",
        "'",
        "[1][2]",
        "a.b.c(",
        "1" + "+1" * 240,
        "(" * 200 + "1" + ")" * 200,
        "self" + ".x" * 240,
        "Object{x: 1}",
    ),
    *(
        "(",
        "[a",
        "(?<x>a)",
        "(?i)a",
        "a{1001}",
        "^(a+)+$",
        "\\p{L}",
        "\\8",
        ".spec",
        "{.a[?(@.b)]}",
        ".a[0]",
        "$.a",
        "{",
    ),
    *("In", "Exists", "Gt", "Always", "Never", "TCP", "SCTP", "None", "Delete", "Foreground", "Equal", "NoExecute"),
    *(
        "pods",
        "cpu",
        "requests.cpu",
        "hugepages-2Mi",
        "count/pods",
        "limits.memory",
        "example.com/a",
        "kubernetes.io/a",
    ),
    *("metadata.name", "metadata.labels['a']", "spec.nodeName", "status.podIP", "limits.cpu", "default", "kube-system"),
    *("0-1,3-2", "1,,2", "0-", "9223372036854775808", "Europe/Paris", "Local", "../etc", "en_US"),
)
NUMBERS = (
    *(0, 1, -1, 2, 7, 100, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1),
    *(2**64, 10**30, 1.0, 1.5, -0.0, 1e-9, 1e21, 1e308, float("inf"), float("nan")),
)
BAGS = (
    *(
        [],
        [None],
        [[]],
        [{}],
        [""],
        [1],
        ["a", "a"],
        [True],
        {},
        {"": ""},
        {"a": None},
        {"a": {}},
        {"a": "b"},
        {"a/b/c": "d"},
    ),
    *(
        {"é": "ü"},
        {"a" * 300: "b"},
        {"a": "b" * 300},
        {"$patch": "delete"},
        {"$patch": "replace"},
        {"$patch": 1},
        [{"$patch": "delete"}],
    ),
    *({"$setElementOrder/a": 1}, {"$retainKeys": ["a"]}, {"$retainKeys": 1}, {"$deleteFromPrimitiveList/a": ["b"]}),
    *(
        {"f:metadata": {"f:labels": {".": {}}}},
        {"f:a": {'k:{"a":1}': {}}},
        {"f:a": {"k:{": {}}},
        {"v:[": {}},
        {"i:x": {}},
    ),
    *(
        {"matchLabels": {"a": 1}},
        {"matchExpressions": [{}]},
        {"apiVersion": 1, "kind": []},
        {"name": {}},
        {"kind": "List"},
    ),
)
JUNK = (None, True, False, *NUMBERS, *TEXTS, *BAGS, *_DEEP)
SENDABLE = tuple(text for text in TEXTS if text.isprintable() and text != "\ud800")
"""What can stand in a query or a header."""
KEYS = (
    *(
        "",
        "a",
        "$patch",
        "$retainKeys",
        "unknown",
        "name",
        "Name",
        "metadata",
        "spec",
        "status",
        "labels",
        "annotations",
    ),
    *(
        "finalizers",
        "ownerReferences",
        "managedFields",
        "generateName",
        "creationTimestamp",
        "deletionTimestamp",
        "uid",
    ),
    *(
        "resourceVersion",
        "namespace",
        "generation",
        "apiVersion",
        "kind",
        "selector",
        "template",
        "items",
        "é",
        "a" * 300,
    ),
)
SPOILED = (
    *(
        b"",
        b" ",
        b"{",
        b"null",
        b"[]",
        b"1",
        b'"a"',
        b"{}{}",
        b"{}x",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"a":\xff}',
        b"k8s\0",
    ),
    *(b"k8s\0\x0a\x01", b"k8s\0" + b"\x08" * 40, b"\x1f\x8b\x08", b"- a\n", b"a: &a [*a]", b"a: !!python/object:x {}"),
    *(
        b"a: 2030-01-01\nb: 0o7\nc: yes\nd: .nan\n",
        b"a: &a {b: 1}\nc: {<<: *a}\n",
        b"? [a]\n: b\n",
        b"---\n---\n",
        b"\t",
    ),
    b"a: &a [x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d]\nf: [*e,*e,*e]",
    *(b'{"a":1,"a":2}', b'{"metadata":{"name":"x","name":"y"}}', b'{"spec":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}'),
    *(b"[" * 20000, b'{"a":' * 20000, b'{"a":01}', b'{"a":-}', b'{"kind":1}', b'{"metadata":null}', b'{"metadata":[]}'),
)


def _junk(tape: Tape) -> Any:
    return copy.deepcopy(tape.one(JUNK))


def mutated(tape: Tape, doc: Any, times: int) -> Any:
    """A copy of a document with so many changes."""
    doc = copy.deepcopy(doc)
    for _ in range(times):
        doc = _mutate(tape, doc)
    return doc


def _mutate(tape: Tape, doc: Any) -> Any:
    spots = places(doc)
    path = tape.one(spots)
    value = _at(doc, path)
    action = tape.number(10)
    if action == 0 and path:
        return _remove(doc, path)
    if action == 1 and isinstance(value, dict):
        value[tape.one(KEYS)] = _junk(tape)
        return doc
    if action == 2 and isinstance(value, list):
        value.append(copy.deepcopy(value[0]) if value and tape.seldom(2) else _junk(tape))
        return doc
    if action == 3:
        other = copy.deepcopy(_at(doc, tape.one(spots)))
        return _replace(doc, path, other)
    if action == 4 and isinstance(value, str):
        return _replace(doc, path, value + tape.one(TEXTS))
    return _replace(doc, path, _junk(tape))


def _at(doc: Any, path: Path) -> Any:
    for part in path:
        doc = doc[part]
    return doc


def _replace(doc: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    _at(doc, path[:-1])[path[-1]] = value
    return doc


def _remove(doc: Any, path: Path) -> Any:
    del _at(doc, path[:-1])[path[-1]]
    return doc


def encoded(tape: Tape, doc: Any) -> bytes:
    """As JSON, which may be broken on the way."""
    text = json.dumps(doc)
    for name, nest in _DEEP.items():
        text = text.replace(json.dumps(name), nest)
    data = text.encode()
    if not tape.seldom(16):
        return data
    if tape.seldom(2):
        return tape.one(SPOILED)
    at = tape.number(len(data) + 1)
    return data[:at] + tape.one(SPOILED) + data[at + tape.number(4) :]


def json_patch(tape: Tape, doc: Any) -> Any:
    """Operations on places of a document, and beside them."""
    spots = ["".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path) for path in places(doc)]
    odd = ["", "/", "a", "/-", "/~", "/~2", "/metadata/-", "/spec/0", "/a/b/c", "/metadata/labels/a~1b", "/é"]

    def pointer() -> Any:
        kind = tape.number(10)
        if kind == 0:
            return _junk(tape)
        if kind == 1:
            return tape.one(odd)
        tail = tape.one(["", "", "", "/-", "/0", "/-1", "/99", "/01", "/a", "/"])
        return tape.one(spots) + tail

    names = ["add", "add", "replace", "replace", "remove", "move", "copy", "test", "x", 1, None]
    made = []
    for _ in range(1 + tape.number(3)):
        operation = {"op": tape.one(names), "path": pointer(), "value": _junk(tape), "from": pointer()}
        left_out = tape.one(["", "", "", "value", "from", "path", "op"])
        operation.pop(left_out, None)
        made.append(operation)
    return made
