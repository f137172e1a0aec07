"""JSON as Go reads it: with the texts of its syntax errors, and repeated keys, which dicts lose.

Valid JSON without spaces takes a fast path.
"""

import json
import re
from itertools import zip_longest

import msgspec

from kcm_cli.machinery.nesting import without_escapes
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.schema.model import NOTHING, Field, Node

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"')
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]", re.DOTALL)
_NESTING = re.compile(r'"[^"]*+"?|[\[\]{}]')
MAX_DEPTH = 200
"""The maximum nesting of a document; upstream's is 10,000."""
_LONG_INT = 20
_VALUES = frozenset(("string", "boolean", "int32", "int64", "number"))
_END = "unexpected end of JSON input"


class Pairs(list[tuple[str, object]]):
    """A JSON object as it was written: in order, with repeated keys."""


class Float(float):
    """A number with a fraction or an exponent; ``text`` is how it was written."""

    text: str


def _float(text: str) -> Float:
    value = Float(text)
    value.text = text
    return value


def _int(text: str) -> int | Float:
    return int(text) if len(text) <= _LONG_INT else _float(text)


_any_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_decoder = json.JSONDecoder(object_pairs_hook=Pairs, parse_float=_float, parse_int=_int)


def parse_pairs(text: str) -> object:
    """Parse valid JSON without losing repeated keys."""
    return _decoder.decode(without_lone_surrogates(text))


def without_lone_surrogates(text: str) -> str:
    """JSON in which the escape of half a surrogate pair is that of U+FFFD."""
    return _ESCAPE.sub(_replace_lone_surrogate, text) if "\\u" in text else text


def _replace_lone_surrogate(match: re.Match[str]) -> str:
    text = match[0]
    alone = len(text) == 6 and text[2] in "dD" and text[3] in "89abcdefABCDEF"
    return "\\ufffd" if alone else text


def decoded(value: object, node: Node | None = None, old: object = None) -> object:
    """Convert Pairs to dicts. Of repeated keys the last wins, but the structs, maps and lists of a type are decoded
    into the earlier value (``old``), which changes.

    upstream: sigs.k8s.io/json internal/golang/encoding/json/decode.go
    """
    kind = node.kind if node is not None else ""
    item_node = node.item if node is not None and kind in ("map", "list") else None
    if isinstance(value, Pairs):
        out = old if isinstance(old, dict) and kind in ("struct", "map") else {}
        for key, item in value:
            field = node.fields.get(key) if node is not None and kind == "struct" else None
            if field is None:
                out[key] = decoded(item, item_node)
            elif item is not None or _is_nil(field):
                out[key] = decoded(item, field.node, out.get(key))
        return out
    if isinstance(value, list):
        known = old if isinstance(old, list) and kind == "list" else []
        return [decoded(item, item_node, before) for item, before in zip_longest(value, known[: len(value)])]
    return float(value) if isinstance(value, Float) else value


def _is_nil(field: Field) -> bool:
    """Whether null unsets a field, as it does Go's pointers, but not strings, numbers, booleans and structs."""
    if field.node.kind in _VALUES:
        return field.keeps_zero and field.absent is NOTHING
    return field.absent.__class__ is not dict


class SyntaxProblem(Exception):
    """The text is not JSON; the message is Go's."""


def read(data: bytes) -> tuple[object, object]:
    """The value, and the same as Pairs where keys are repeated (else None). Raises SyntaxProblem."""
    check_depth(data)
    try:
        value = _any_decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _read_slowly(data)
    if len(_encoder.encode(value)) == len(data.rstrip()):
        return value, None  # written compactly, nothing lost
    text = data.decode()
    if not _repeats_keys(text):
        return value, None
    pairs = parse_pairs(text)
    return decoded(pairs), pairs


def check_depth(data: bytes) -> None:
    """Raises SyntaxProblem where JSON is nested too deep."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:
        return
    depth = 0
    for match in _NESTING.finditer(without_escapes(data.decode("utf-8", "replace"))):
        char = match[0]
        depth += (char in "[{") - (char in "]}")
        if depth > MAX_DEPTH:
            raise SyntaxProblem(f"invalid character {_char(char)} exceeded max depth")


def _read_slowly(data: bytes) -> tuple[object, object]:
    """Read a text that the fast parser refuses. It is wrong, or only unusual (bytes that are not UTF-8)."""
    text = data.decode("utf-8", "replace")
    problem = syntax_error(text)
    if problem is not None:
        raise SyntaxProblem(problem)
    pairs = parse_pairs(text)
    return decoded(pairs), pairs


class _Repeated(Exception):
    pass


def _without_repeats(pairs: list[tuple[str, object]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _Repeated


_repeat_finder = json.JSONDecoder(object_pairs_hook=_without_repeats, parse_int=str)


def _repeats_keys(text: str) -> bool:
    try:
        _repeat_finder.decode(text)
    except _Repeated:
        return True
    except ValueError:
        return False
    return False


def syntax_error(text: str) -> str | None:
    """The error of Go's parser, or None if the text is one JSON value."""
    try:
        end = _Scanner(text).value(0)
    except _Syntax as error:
        return str(error)
    rest = _SPACE.match(text, end)
    end = rest.end() if rest else end
    return None if end == len(text) else f"invalid character {_char(text[end])} after top-level value"


class _Syntax(Exception):
    pass


class _Scanner:
    """Finds the first invalid character."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _peek(self, at: int) -> str:
        if at >= len(self._text):
            raise _Syntax(_END)
        return self._text[at]

    def _fail(self, at: int, where: str) -> _Syntax:
        if at >= len(self._text):
            return _Syntax(_END)
        return _Syntax(f"invalid character {_char(self._text[at])} {where}")

    def value(self, at: int) -> int:
        at = self._skip(at)
        char = self._peek(at)
        if char == "{":
            return self._object(at + 1)
        if char == "[":
            return self._array(at + 1)
        if char == '"':
            return self._string(at)
        if char in "tfn":
            return self._literal(at, {"t": "true", "f": "false", "n": "null"}[char])
        if char in "-0123456789":
            return self._number(at)
        raise self._fail(at, "looking for beginning of value")

    def _object(self, at: int) -> int:
        at = self._skip(at)
        if self._peek(at) == "}":
            return at + 1
        while True:
            at = self._skip(at)
            if self._peek(at) != '"':
                raise self._fail(at, "looking for beginning of object key string")
            at = self._skip(self._string(at))
            if self._peek(at) != ":":
                raise self._fail(at, "after object key")
            at = self._skip(self.value(at + 1))
            if self._peek(at) == "}":
                return at + 1
            if self._text[at] != ",":
                raise self._fail(at, "after object key:value pair")
            at += 1

    def _array(self, at: int) -> int:
        at = self._skip(at)
        if self._peek(at) == "]":
            return at + 1
        while True:
            at = self._skip(self.value(at))
            if self._peek(at) == "]":
                return at + 1
            if self._text[at] != ",":
                raise self._fail(at, "after array element")
            at += 1

    def _string(self, at: int) -> int:
        match = _STRING.match(self._text, at)
        if match:
            return match.end()
        at += 1
        while True:
            char = self._peek(at)
            if char < " ":
                raise self._fail(at, "in string literal")
            at = self._escape(at + 1) if char == "\\" else at + 1

    def _escape(self, at: int) -> int:
        char = self._peek(at)
        if char != "u":
            if char not in '"\\/bfnrt':
                raise self._fail(at, "in string escape code")
            return at + 1
        for offset in range(1, 5):
            if self._peek(at + offset) not in "0123456789abcdefABCDEF":
                raise self._fail(at + offset, "in \\u hexadecimal character escape")
        return at + 5

    def _literal(self, at: int, word: str) -> int:
        for offset, expected in enumerate(word):
            if self._peek(at + offset) != expected:
                raise self._fail(at + offset, f"in literal {word} (expecting {_char(expected)})")
        return at + len(word)

    def _number(self, at: int) -> int:
        match = _NUMBER.match(self._text, at)
        if match is None:
            raise self._fail(at + 1, "in numeric literal")
        end = match.end()
        following = self._text[end : end + 1]
        if following == "." and "." not in match[0] and "e" not in match[0].lower():
            raise self._fail(end + 1, "after decimal point in numeric literal")
        if following in ("e", "E") and "e" not in match[0].lower():
            signed = end + 1 + (self._text[end + 1 : end + 2] in ("+", "-"))
            raise self._fail(signed, "in exponent of numeric literal")
        return end


def _char(char: str) -> str:
    """The first byte of a character in single quotes, as in Go's errors."""
    if char == "'":
        return "'\\''"
    if char == '"':
        return "'\"'"
    byte = char.encode("utf-8", "surrogateescape")[:1].decode("latin-1")
    return "'" + quote(byte)[1:-1] + "'"
