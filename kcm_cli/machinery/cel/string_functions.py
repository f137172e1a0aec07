"""Functions of texts.

upstream: cel-go ext/strings.go (version 2), ext/formatting.go, apiserver pkg/cel/library/regex.go
"""

import re
from collections.abc import Callable, Mapping

from kcm_cli.machinery.cel.overloads import LIST, Function, overloaded
from kcm_cli.machinery.cel.values import CelError, Duration, TypeValue, Value
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.regexps import Regexp, compile_go

_MOST_DECIMALS = 1000

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)
_CLAUSE = re.compile(r"%(?:\.(\d+))?([a-zA-Z%])")
_WHITE = " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a" + (
    "\u2028\u2029\u202f\u205f\u3000"
)


def pattern(text: str) -> Regexp:
    """A pattern. Raises CelError."""
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
    found = _pattern_of_find(expression).find_all(text)
    return found if limit < 0 else found[:limit]


def _pattern_of_find(expression: str) -> Regexp:
    try:
        return compile_go(expression)
    except FormatError as error:
        raise CelError(f"Illegal regex: {error}") from None


def shortest(value: float) -> str:
    """A float in the fewest digits that say it, as Go's ``%g``."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        mantissa = mantissa.removesuffix(".0")
        return f"{mantissa}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').zfill(2)}"
    return text.removesuffix(".0")


def plain(value: float) -> str:
    """A float without an exponent."""
    text = f"{value:.9f}".rstrip("0")
    return text.removesuffix(".")


# format


def template_problem(template: str, count: int) -> str:
    """What is wrong with a template for so many arguments, whatever they are; empty if nothing."""
    used = 0
    for match in _CLAUSE.finditer(template):
        if match[2] == "%":
            continue
        if used >= count:
            return f"index {used} out of range"
        used += 1
        if match[2] not in _VERBS:
            return f'could not parse formatting clause: unrecognized formatting clause "{match[2]}"'
    return f"too many arguments supplied to string.format (expected {used}, got {count})" if used < count else ""


def format_text(template: str, args: list[Value]) -> str:
    """``"%s is %d".format([...])``. Raises CelError."""
    used = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal used
        precision, verb = match[1], match[2]
        if verb == "%":
            return "%"
        value = args[used]
        used += 1
        return _VERBS[verb](value, 6 if precision is None else int(precision))

    if problem := template_problem(template, len(args)):
        raise CelError(problem)
    return _CLAUSE.sub(fill, template)


def _format_string(value: Value, precision: int) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float():
            return shortest(value)
        case bytes():
            return value.decode(errors="replace")
        case list() | tuple():
            return "[" + ", ".join(_format_item(item) for item in value) + "]"
        case Mapping():
            items = sorted((_format_string(key, 0), _format_item(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
        case Duration():
            return f"{plain(value.total_seconds())}s"
        case TypeValue():
            return value.name
    return str(value)


def _format_item(value: Value) -> str:
    return _format_string(value, 0)


def _format_decimal(value: Value, precision: int) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    raise CelError("error during formatting: decimal clause can only be used on integers")


def _format_float(form: str) -> Callable[[Value, int], str]:
    def run(value: Value, precision: int) -> str:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if precision > _MOST_DECIMALS:
                raise CelError("error during formatting: precision is too large")
            return f"{float(value):.{precision}{form}}"
        raise CelError("error during formatting: fixed-point clause can only be used on doubles")

    return run


def _format_radix(form: str) -> Callable[[Value, int], str]:
    def run(value: Value, precision: int) -> str:
        if isinstance(value, bool) and form == "b":
            return str(int(value))
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{int(value):{form}}"
        if form in "xX" and isinstance(value, (str, bytes)):
            data = value.encode() if isinstance(value, str) else value
            return data.hex().upper() if form == "X" else data.hex()
        raise CelError("error during formatting: only integers can be formatted in that base")

    return run


_VERBS: Mapping[str, Callable[[Value, int], str]] = {
    "s": _format_string,
    "d": _format_decimal,
    "f": _format_float("f"),
    "e": _format_float("e"),
    "b": _format_radix("b"),
    "x": _format_radix("x"),
    "X": _format_radix("X"),
    "o": _format_radix("o"),
}

FUNCTIONS: Mapping[str, Function] = {
    "strings.quote": overloaded("strings.quote", ((str,), quote)),
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
    "trim": overloaded("trim", ((str,), lambda text: text.strip(_WHITE))),
    "reverse": overloaded("reverse", ((str,), lambda text: text[::-1])),
    "join": overloaded("join", ((LIST,), _join), ((LIST, str), _join)),
    "format": overloaded("format", ((str, LIST), format_text)),
    "find": overloaded("find", ((str, str), _find)),
    "findAll": overloaded("findAll", ((str, str), _find_all), ((str, str, int), _find_all)),
}
