"""The values of YAML scalars, by the server's mix of YAML 1.1 and 1.2 instead of PyYAML's rules.

``y`` and ``n`` are booleans, ``0o7`` and ``07`` octal numbers, ``1e3`` is a number; times and ``12:30:45`` stay text.
"""

import base64
import binascii
import math
import re

from kcm_cli.machinery.go_floats import go_float, to_float32
from kcm_cli.machinery.whole_floats import settle_numbers

_PREFIX = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]{0,19})")
"""Decimal numbers that are longer do not fit 64 bits."""
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_OCTAL = re.compile(r"[-+]?0[0-7]+")
_INT_BITS = (-(2**63), 2**64)


def _spelled(*words: str) -> tuple[str, ...]:
    return tuple(spelling for word in words for spelling in (word, word.capitalize(), word.upper()))


_WORDS: dict[str, object] = {
    **dict.fromkeys(_spelled("y", "yes", "on", "true"), True),
    **dict.fromkeys(_spelled("n", "no", "off", "false"), False),
    **dict.fromkeys(("", "~", *_spelled("null"))),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{f"{sign}{word}": math.inf for sign in ("", "+") for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NON_FINITE_KEYS = {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}
_TAGS = ("str", "int", "float", "bool", "null", "binary")


class BadScalar(Exception):
    """A scalar that does not match its tag, or that JSON does not have. The text is the server's."""


def plain(text: str) -> object:
    """The value of a scalar without quotes and tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if text[0] != "." and _INT.fullmatch(digits):
        number = int(digits, 8) if _OCTAL.fullmatch(digits) else int(digits, 0)
        if _INT_BITS[0] <= number < _INT_BITS[1]:
            return number
    if not _FLOAT.fullmatch(digits):
        return text
    value = float(digits)
    return text if math.isinf(value) else value


def tagged(tag: str, text: str) -> object:
    """The value of a scalar with a tag. Unknown tags are ignored. Raises BadScalar."""
    short = tag.removeprefix(_PREFIX)
    if tag == short or short not in _TAGS or short == "str":
        return text
    if short == "binary":
        return _binary(text)
    value = plain(text)
    kind = _kind(value)
    if short == "float" and kind == "int":
        return value
    if kind != short:
        raise BadScalar(f"yaml: cannot decode !!{kind} `{text}` as a !!{short}")
    return value


def json_value(value: object) -> object:
    """A scalar after its conversion to JSON. Raises BadScalar for infinities and NaN."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise BadScalar(f"json: unsupported value: {go_float(value)}")
    return settle_numbers(value)


def key_text(value: object) -> str | None:
    """A scalar as the key of a JSON object; None if it cannot be one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        text = go_float(to_float32(value))
        return _NON_FINITE_KEYS.get(text, text)
    return str(value) if isinstance(value, int | str) else None


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float" if isinstance(value, float) else "str"


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()).encode("ascii"), validate=True).decode("utf-8", "replace")
    except (binascii.Error, UnicodeEncodeError):
        raise BadScalar("yaml: !!binary value contains invalid base64 data") from None
