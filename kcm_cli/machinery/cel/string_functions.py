"""String functions.

upstream: cel-go ext/strings.go (version 2), apiserver pkg/cel/library/regex.go
"""

from collections.abc import Mapping

from kcm_cli.machinery.cel.overloads import LIST, Function, overloaded
from kcm_cli.machinery.cel.texts import checked_length
from kcm_cli.machinery.cel.values import CelError, Value
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import SPACES
from kcm_cli.machinery.regexps import Regexp, compile_go

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)


def pattern(text: str) -> Regexp:
    """The compiled pattern. Raises CelError."""
    try:
        return compile_go(text)
    except FormatError as error:
        raise CelError(str(error)) from None


matches: Function = overloaded("matches", ((str, str), lambda text, expression: pattern(expression).matches(text)))


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if part == "":
        return offset
    if not 0 <= offset <= len(text):
        raise CelError(f"index out of range: {offset}")
    return text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int | None = None) -> int:
    if part == "":
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if not 0 <= offset <= len(text):
        raise CelError(f"index out of range: {offset}")
    return text.rfind(part, 0, offset + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    times = text.count(old) if count < 0 else min(text.count(old), count)
    checked_length(len(text) + times * (len(new) - len(old)))
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        letters = list(text)
        return letters if limit < 0 or len(letters) <= limit else [*letters[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if start < 0 or start > len(text):
        if end is not None and start > stop:
            raise CelError(f"invalid substring range. start: {start}, end: {stop}")
        raise CelError(f"index out of range: {start}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    if stop > len(text):
        raise CelError(f"index out of range: {stop}")
    return text[start:stop]


def _join(parts: list[Value], separator: str = "") -> str:
    for part in parts:
        if not isinstance(part, str):
            raise CelError(f"join: invalid input: {part}")
    return separator.join(map(str, parts))


def _find(text: str, expression: str) -> str:
    return _pattern_of_find(expression).find(text)


def _find_all(text: str, expression: str, limit: int = -1) -> list[str]:
    return _pattern_of_find(expression).find_all(text, limit)


def _pattern_of_find(expression: str) -> Regexp:
    try:
        return compile_go(expression)
    except FormatError as error:
        raise CelError(f"Illegal regex: {error}") from None


_ESCAPES = {ord(char): f"\\{short}" for char, short in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


FUNCTIONS: Mapping[str, Function] = {
    "strings.quote": overloaded("strings.quote", ((str,), _quoted)),
}
METHODS: Mapping[str, Function] = {
    "contains": overloaded("contains", ((str, str), lambda text, part: part in text)),
    "startsWith": overloaded("startsWith", ((str, str), str.startswith)),
    "endsWith": overloaded("endsWith", ((str, str), str.endswith)),
    "matches": matches,
    "charAt": overloaded("charAt", ((str, int), _char_at)),
    "indexOf": overloaded("indexOf", ((str, str), _index_of), ((str, str, int), _index_of)),
    "lastIndexOf": overloaded("lastIndexOf", ((str, str), _last_index_of), ((str, str, int), _last_index_of)),
    "lowerAscii": overloaded("lowerAscii", ((str,), lambda text: text.translate(_TO_LOWER))),
    "upperAscii": overloaded("upperAscii", ((str,), lambda text: text.translate(_TO_UPPER))),
    "replace": overloaded("replace", ((str, str, str), _replace), ((str, str, str, int), _replace)),
    "split": overloaded("split", ((str, str), _split), ((str, str, int), _split)),
    "substring": overloaded("substring", ((str, int), _substring), ((str, int, int), _substring)),
    "trim": overloaded("trim", ((str,), lambda text: text.strip(SPACES))),
    "reverse": overloaded("reverse", ((str,), lambda text: text[::-1])),
    "join": overloaded("join", ((LIST,), _join), ((LIST, str), _join)),
    "find": overloaded("find", ((str, str), _find)),
    "findAll": overloaded("findAll", ((str, str), _find_all), ((str, str, int), _find_all)),
}
