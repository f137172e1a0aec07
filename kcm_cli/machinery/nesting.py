"""Reads JSON that nests too deeply for a decoder that recurses: no function here does.

Only text that the decoder has refused comes here. Strings and brackets are read, in one pass; what is between them is
the decoder's business. upstream's decoders go down to 10,000 levels (Go's encoding/json), and skip fields that a type
does not have without a limit of their own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import AnyStr

import msgspec
from msgspec import inspect

from kcm_cli.machinery.errors import MachineryError

DEEP = 200
"""Values that nest deeper are cut out of fields that a view does not have. Python 3.11 decodes some 900 levels."""
LEVELS = 32
"""Deep values are looked for down to this level. Views have fewer."""
# These read a text without escapes.
_STRING = re.compile(rb'"[^"]*+"')
_BRACKET = re.compile(rb'[^{}\[\]"]*+(?:"[^"]*+"[^{}\[\]"]*+)*(?:([{\[])|([}\]])|\Z|")')
"""Up to the next bracket that is not in a string. Without a group: the end, or a string that does not end."""
_OPENS, _CLOSES = 1, 2
_PAIRS = (b"{}", b"[]")
_SPACE = re.compile(rb"[ \t\r\n]*+")
_WORD = re.compile(rb'[^ \t\r\n,:{}\[\]"]++')
_LISTS = (inspect.VarTupleType, inspect.ListType, inspect.SetType, inspect.FrozenSetType)


class Malformed(MachineryError):
    """Brackets or strings that do not end, or a member without a name."""


class Extents:
    """Where the values of a JSON text begin and end.

    Positions are those of the first byte of a value, and one after its last. Raises Malformed for brackets that do not
    match. whole: scan the text now; otherwise its parts are scanned one by one, and no value is known as deep.
    """

    def __init__(self, data: bytes, *, whole: bool = True) -> None:
        self._data, self._plain = data, without_escapes(data)
        self._deep: dict[int, int] = {}
        """The ends of values that nest deeper than DEEP, by position."""
        self.root = self._after_space(0)
        if not whole:
            return
        end = self._scan(self.root, self._deep)
        if self._after_space(end) != len(data):
            raise Malformed("there is something after the end")

    def value(self, at: int) -> tuple[int, int]:
        """Start and end of the value that comes next."""
        first = self._after_space(at)
        return first, self._end(first)

    def is_deep(self, start: int) -> bool:
        """Whether the value nests deeper than DEEP."""
        return start in self._deep

    def members(self, start: int) -> Iterator[tuple[str, int, int]]:
        """The members of an object: name, start and end of the value. Empty for other values."""
        data = self._data
        if data[start : start + 1] != b"{":
            return
        at = self._after_space(start + 1)
        while data[at : at + 1] != b"}":
            name, first = self._name(at)
            last = self._end(first)
            yield name, first, last
            at = self._next(last, b"}")

    def elements(self, start: int) -> Iterator[tuple[int, int]]:
        """Start and end of each element of a list. Empty for other values."""
        data = self._data
        if data[start : start + 1] != b"[":
            return
        at = self._after_space(start + 1)
        while data[at : at + 1] != b"]":
            last = self._end(at)
            yield at, last
            at = self._next(last, b"]")

    def parts(self) -> Iterator[tuple[str, int, int, bool]]:
        """The members of the whole text, an object: name, start and end; of a list each element, which the last value
        says."""
        data, at = self._data, self._after_space(self.root + 1)
        if data[self.root : self.root + 1] != b"{":
            raise Malformed("it is no object")
        while data[at : at + 1] != b"}":
            name, first = self._name(at)
            if data[first : first + 1] == b"[":
                at = self._after_space(first + 1)
                while data[at : at + 1] != b"]":
                    last = self._end(at)
                    yield name, at, last, True
                    at = self._next(last, b"]")
                last = at + 1
            else:
                last = self._end(first)
                yield name, first, last, False
            at = self._next(last, b"}")
        if self._after_space(at + 1) != len(data):
            raise Malformed("there is something after the end")

    def _name(self, at: int) -> tuple[str, int]:
        """The name of a member, and the start of its value."""
        name = _STRING.match(self._plain, at)
        if name is None:
            raise Malformed(f"a member has no name (byte {at})")
        text, at = self._data[at : name.end()], self._after_space(name.end())
        if self._data[at : at + 1] != b":":
            raise Malformed(f"a member has no value (byte {at})")
        return _text(text), self._after_space(at + 1)

    def _next(self, last: int, closing: bytes) -> int:
        """The position of the next member, or of the closing bracket."""
        at = self._after_space(last)
        if self._data[at : at + 1] != b",":
            if self._data[at : at + 1] == closing:
                return at
            raise Malformed(f"there is something between two values (byte {at})")
        at = self._after_space(at + 1)
        if self._data[at : at + 1] == closing:
            raise Malformed(f"there is nothing after a comma (byte {at})")
        return at

    def _after_space(self, at: int) -> int:
        match = _SPACE.match(self._data, at)
        return match.end() if match else at

    def _end(self, start: int) -> int:
        """The end of a value."""
        known = self._deep.get(start)
        if known is not None:
            return known
        first = self._data[start : start + 1]
        if first in (b"{", b"["):
            return self._scan(start, {})
        match = (_STRING if first == b'"' else _WORD).match(self._plain, start)
        if match is None:
            raise Malformed(f"there is no value (byte {start})")
        return match.end()

    def _scan(self, start: int, deep: dict[int, int]) -> int:
        """The end of an object or a list. deep: gets the ends of the deep values down to LEVELS."""
        if self._data[start : start + 1] not in (b"{", b"["):
            return self._end(start)
        open_: list[tuple[int, bytes, int]] = []
        """The open brackets up to LEVELS: position, bracket, and the deepest level before it in the one around it."""
        level = bottom = 0
        for match in _BRACKET.finditer(self._plain, start):
            kind = match.lastindex
            if kind == _OPENS:
                level += 1
                if level <= LEVELS:
                    open_.append((match.end() - 1, match[_OPENS], bottom))
                    bottom = level
                elif level > bottom:
                    bottom = level
            elif kind is None:
                break
            else:
                level -= 1
                if level < LEVELS:
                    first, bracket, before = open_.pop()
                    if bracket + match[_CLOSES] not in _PAIRS:
                        raise Malformed(f"brackets do not match (byte {match.end() - 1})")
                    if bottom - level > DEEP:
                        deep[first] = match.end()
                    if not level:
                        return match.end()
                    bottom = max(bottom, before)
        raise Malformed("the text was cut")


def without_escapes(text: AnyStr) -> AnyStr:
    """A JSON text of the same length, in which a string goes from a quote to the next one.

    Each escape of a quote or a backslash is two other characters. Patterns need no group that repeats for what is
    between two quotes: possessive ones match wrongly on Python 3.11.0 to 3.11.4 (python/cpython#106052).
    """
    if isinstance(text, bytes):
        return text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    return text.replace("\\\\", "__").replace('\\"', "__")


def _text(string: bytes) -> str:
    """The text of a JSON string; as it is written, where it cannot be decoded."""
    try:
        return msgspec.json.decode(string, type=str)
    except (msgspec.DecodeError, UnicodeError):
        return string[1:-1].decode(errors="replace")


def shallow(data: bytes, type_: object) -> bytes:
    """The text without the deep values of fields that the type does not have: null is in their place.

    Raises Malformed.
    """
    return _cut(data, _undeclared(Extents(data), type_))


def _undeclared(extents: Extents, type_: object) -> Iterator[tuple[int, int]]:
    todo = [(extents.root, _info(type_))]
    while todo:
        start, info = todo.pop()
        if not extents.is_deep(start):
            continue
        for part in info.types if isinstance(info, inspect.UnionType) else (info,):
            if isinstance(part, inspect.StructType):
                fields = _fields(part.cls)
                for name, first, last in extents.members(start):
                    if not extents.is_deep(first):
                        continue
                    field = fields.get(name)
                    if field is None:
                        yield first, last
                    else:
                        todo.append((first, field))
            elif isinstance(part, inspect.DictType):
                todo.extend((first, part.value_type) for _, first, _ in extents.members(start))
            elif isinstance(part, _LISTS):
                todo.extend((first, part.item_type) for first, _ in extents.elements(start))


@cache
def _info(type_: object) -> inspect.Type:
    return inspect.type_info(type_)


@cache
def _fields(struct: type) -> Mapping[str, inspect.Type]:
    """The types of a struct's fields, by their names in JSON."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field.type for field in info.fields}


def without(data: bytes, paths: Iterable[tuple[str, ...]], anywhere: str) -> bytes:
    """The text with null for the values at these paths (lists on the way are followed), and for all values of members
    with the name ``anywhere``.

    Raises Malformed.
    """
    extents = Extents(data)
    cuts = [cut for path in paths for cut in _at(extents, path)]
    name = re.compile(rb'"%s"[ \t\r\n]*+:' % re.escape(anywhere.encode()))
    at = 0
    while (match := name.search(data, at)) is not None:
        first, at = extents.value(match.end())
        cuts.append((first, at))
    return _cut(data, cuts)


def _at(extents: Extents, path: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    todo = [(*extents.value(0), path)]
    while todo:
        first, last, rest = todo.pop()
        if not rest:
            yield first, last
            continue
        for start, _ in (*extents.elements(first), (first, last)):  # members of other values are none
            for name, *ends in extents.members(start):
                if name == rest[0]:
                    todo.append((ends[0], ends[1], rest[1:]))


def _cut(data: bytes, cuts: Iterable[tuple[int, int]]) -> bytes:
    """The text with null in place of these values; one in another is cut with it."""
    parts: list[bytes] = []
    done = 0
    for first, last in sorted(cuts):
        if first >= done:
            parts += (data[done:first], b"null")
            done = last
    return b"".join((*parts, data[done:])) if parts else data
