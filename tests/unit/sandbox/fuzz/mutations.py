"""Mutations that make valid requests invalid."""

import copy
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from tests.unit.sandbox.fuzz.junk import BAGS, KEYS, NUMBERS, SPOILED, TEXTS
from tests.unit.sandbox.fuzz.objects import places

T = TypeVar("T")
Path = tuple[str | int, ...]


class Tape:
    """Decisions from bytes: the same bytes make the same decisions; without bytes, the simplest ones."""

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
        """True for one of ``often`` numbers."""
        return self.number(often) == often - 1


_DEEP = {
    f"@{depth}{opening}": opening * depth + "1" + closing * depth
    for depth in (30, 150, 190, 300, 30000)
    for opening, closing in (("[", "]"), ('{"a":', "}"))
}
"""What stands for deep nests in documents, and the JSON that is put there in the end."""
JUNK = (None, True, False, *NUMBERS, *TEXTS, *BAGS, *_DEEP)
SENDABLE = tuple(text for text in TEXTS if text.isprintable() and text != "\ud800")
"""What can stand in a query or a header."""


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
    """Encode as JSON, possibly damaged."""
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
    """Operations on paths of a document, and on others."""
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
