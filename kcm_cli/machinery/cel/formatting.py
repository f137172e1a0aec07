"""``'%s is %d'.format([a, b])``: formatting, and checks as far as the template and the types are known.

Numbers are written as in the locale en_US: ``%f`` groups digits, ``%e`` has superscripts and always six decimals.

upstream: cel-go ext/formatting.go
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from kcm_cli.machinery.cel.overloads import LIST, Function, overloaded
from kcm_cli.machinery.cel.syntax import ListNode, MapNode, Node
from kcm_cli.machinery.cel.texts import checked_length, fitting, simple_text
from kcm_cli.machinery.cel.types import Type
from kcm_cli.machinery.cel.values import CelError, TypeValue, Value, type_name
from kcm_cli.machinery.quoting import quote

_DECIMALS = 6
_MOST_DECIMALS = 1000
_INFINITY = float("inf")
_NOT_FINITE = {"NaN": float("nan"), "Infinity": _INFINITY, "-Infinity": -_INFINITY}
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_PRECISION = re.compile(r"\.([0-9]*)")

_NUMBERS = ("int", "uint")
_ANY_TEXT = ("list", "map", *_NUMBERS, "double", "bool", "string", "bytes", "type", "null_type")
_TAKES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "s": (
        (*_ANY_TEXT, "google.protobuf.Timestamp", "google.protobuf.Duration"),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
        "timestamps",
    ),
    "d": (_NUMBERS, "decimal clause can only be used on integers"),
    "f": (("double", "string"), "fixed-point clause can only be used on doubles"),
    "e": (("double", "string"), "scientific clause can only be used on doubles"),
    "b": ((*_NUMBERS, "bool"), "only integers and bools can be formatted as binary"),
    "x": (
        (*_NUMBERS, "string", "bytes"),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (_NUMBERS, "octal clause can only be used on integers"),
}
"""What each clause takes, by the names of types, and how it is said that it does not take another one."""


def template_problem(
    template: str, elements: tuple[Node, ...], types: Mapping[int, Type]
) -> tuple[int | None, str] | None:
    """(offset of the wrong argument, message) if a template does not match its arguments; None otherwise."""
    place: int | None = None

    def checked(verb: str, precision: int | None, index: int) -> str:
        nonlocal place
        wrong = _misfit(verb, elements[index], types)
        if wrong is not None:
            place = wrong.offset
            raise _refused(verb, types[id(wrong)].name)
        return ""

    try:
        _, used = _filled(template, len(elements), checked)
    except CelError as error:
        return place, str(error)
    if used < len(elements):
        return None, f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
    return None


def _misfit(verb: str, node: Node, types: Mapping[int, Type]) -> Node | None:
    """The argument, or a literal in it, whose known type does not match the clause; None if there is none."""
    kind = types[id(node)]
    if not kind.dynamic and kind.name not in _TAKES[verb.lower()][0]:
        return node
    if verb != "s":
        return None
    inner: tuple[Node, ...] = ()
    if isinstance(node, ListNode):
        inner = node.elements
    elif isinstance(node, MapNode):
        inner = tuple(each for key, value, _ in node.entries for each in (key, value))
    return next((wrong for each in inner if (wrong := _misfit(verb, each, types)) is not None), None)


def format_text(template: str, args: list[Value]) -> str:
    """Format the arguments. Raises CelError."""
    return _filled(template, len(args), lambda verb, precision, at: _VERBS[verb](args[at], verb, precision))[0]


def _filled(template: str, count: int, fill: Callable[[str, int | None, int], str]) -> tuple[str, int]:
    """(the template with its clauses filled, the number of clauses). Raises CelError.

    fill: called with the verb, the precision and the index of the argument.
    """
    parts, at, used, length = [], 0, 0, len(template)
    while (found := template.find("%", at)) >= 0:
        parts.append(template[at:found])
        at = found + 1
        if template[at : at + 1] == "%":
            parts.append("%")
            at += 1
            continue
        if at == len(template):
            raise CelError("unexpected end of string")
        if used >= count:
            raise CelError(f"index {used} out of range")
        verb, precision, at = _clause(template, at)
        parts.append(fill(verb, precision, used))
        length += len(parts[-1])
        checked_length(length)
        used += 1
    return "".join((*parts, template[at:])), used


def _clause(template: str, at: int) -> tuple[str, int | None, int]:
    """(verb, precision, end of the clause)."""
    precision = None
    if (match := _PRECISION.match(template, at)) is not None:
        at = match.end()
        if at == len(template):
            raise _unparsed("error while parsing precision: could not find end of precision specifier")
        precision = _precision(match[1])
    verb = template[at]
    if verb not in _VERBS:
        first_byte = chr(verb.encode(errors="surrogatepass")[0])
        raise _unparsed(f'unrecognized formatting clause "{first_byte}"')
    return verb, precision, at + 1


def _precision(digits: str) -> int:
    significant = digits.lstrip("0")
    wrong = "invalid syntax" if not digits else "value out of range" if len(significant) > 18 else ""
    if wrong:
        atoi = f'strconv.Atoi: parsing "{digits}": {wrong}'
        raise _unparsed(f"error while parsing precision: error while converting precision to integer: {atoi}")
    return int(significant or "0")


def _unparsed(why: str) -> CelError:
    return CelError(f"could not parse formatting clause: {why}")


def _refused(verb: str, kind: str) -> CelError:
    return CelError(f"error during formatting: {_TAKES[verb.lower()][1]}, was given {kind}")


# one clause each: value, letter, precision


def _string(value: Value, verb: str, precision: int | None) -> str:
    match value:
        case None:
            return "null"
        case TypeValue():
            return value.name
        case list() | tuple():
            return "[" + ", ".join(fitting(map(_literal, value))) + "]"
        case Mapping():
            texts = fitting(_literal(each) for pair in value.items() for each in pair)
            return "{" + ", ".join(f"{key}:{item}" for key, item in sorted(zip(texts, texts, strict=True))) + "}"
    text = simple_text(value)
    if text is None:
        raise _refused(verb, type_name(value))
    return text


def _literal(value: Value) -> str:
    """An element of a list or map, written as a literal."""
    match value:
        case str():
            return quote(value)
        case bytes():
            return f"b{quote(_string(value, 's', None))}"
        case float() if value - value == 0:
            return f"{value:.6f}"
        case float():
            return quote(_string(value, "s", None))
        case datetime():
            return f"timestamp({quote(_string(value, 's', None))})"
        case timedelta():
            return f"duration({quote(_string(value, 's', None))})"
    return _string(value, "s", None)


def _decimal(value: Value, verb: str, precision: int | None) -> str:
    return str(_integer(value, verb))


def _integer(value: Value, verb: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise _refused(verb, type_name(value))


def _float(value: Value, verb: str, precision: int | None) -> str:
    number = _NOT_FINITE.get(value) if isinstance(value, str) else value
    if not isinstance(number, float):
        raise _refused(verb, type_name(value))
    if number != number:
        return "NaN"
    if number in (_INFINITY, -_INFINITY):
        return "∞" if number > 0 else "-∞"
    if verb == "e":
        mantissa, _, exponent = f"{number + 0.0:.{_DECIMALS}e}".partition("e")
        return f"{mantissa}×10{exponent.removeprefix('+').translate(_SUPERSCRIPTS)}"
    decimals = _DECIMALS if precision is None else precision
    if decimals > _MOST_DECIMALS:
        raise CelError("error during formatting: precision is too large")
    return f"{number + 0.0:,.{decimals}f}"


def _radix(value: Value, verb: str, precision: int | None) -> str:
    if verb == "b" and isinstance(value, bool):
        return str(int(value))
    if verb in "xX" and isinstance(value, (str, bytes)):
        digits = (value.encode(errors="surrogatepass") if isinstance(value, str) else value).hex()
        return digits.upper() if verb == "X" else digits
    return f"{_integer(value, verb):{verb}}"


_VERBS: Mapping[str, Callable[[Value, str, int | None], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _float,
    "e": _float,
    "b": _radix,
    "x": _radix,
    "X": _radix,
    "o": _radix,
}

METHODS: Mapping[str, Function] = {"format": overloaded("format", ((str, LIST), format_text))}
