"""Scalars in the canonical form in which the server stores them.

Each function returns the value to store. It raises ``FormatError`` with upstream's text for a value that cannot be
parsed, and ``TypeError`` for a value of another JSON type.
"""

import base64
import binascii
from datetime import datetime

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import SPACES
from kcm_cli.machinery.quantity import parse
from kcm_cli.machinery.remembered import remembered
from kcm_cli.machinery.times import format_micro_time, format_time, parse_micro_time, parse_time
from kcm_cli.machinery.whole_floats import settle_numbers, widen

_ZERO_TIME = datetime(1, 1, 1)


def int32(value: object) -> object:
    if value.__class__ is int and -0x80000000 <= value <= 0x7FFFFFFF:
        return value
    raise TypeError


def int64(value: object) -> object:
    if value.__class__ is int and -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        return value
    raise TypeError


def number(value: object) -> object:
    if value.__class__ is int or value.__class__ is float:
        return any_json(value)
    raise TypeError


def any_json(value: object) -> object:
    """Any JSON, with its numbers as Go writes them after reading. Objects and lists are changed in place."""
    try:
        return settle_numbers(widen(value))
    except OverflowError:
        raise TypeError from None


def int_or_string(value: object) -> object:
    return value if value.__class__ is str else int32(value)


@remembered(4096)
def _time(text: str) -> str | None:
    moment = parse_time(text)
    return None if moment.replace(tzinfo=None) == _ZERO_TIME else format_time(moment)


def time(value: object) -> object:
    """metav1.Time: whole seconds, UTC; Go's zero time is null."""
    if value.__class__ is not str:
        raise TypeError
    return _time(value)


@remembered(4096)
def _micro_time(text: str) -> str | None:
    moment = parse_micro_time(text)
    return None if moment.replace(tzinfo=None) == _ZERO_TIME else format_micro_time(moment)


def micro_time(value: object) -> object:
    """metav1.MicroTime: six decimals, UTC."""
    if value.__class__ is not str:
        raise TypeError
    return _micro_time(value)


@remembered(4096)
def _quantity(text: str) -> str:
    return str(parse(text))


def quantity(value: object) -> object:
    """resource.Quantity: of a number, its text is parsed."""
    if value.__class__ is str:
        return _quantity(value.strip(SPACES))
    if value.__class__ is bool or not isinstance(value, int | float):
        return _quantity(str(value).lower())
    return _quantity(repr(value))


def base64_bytes(value: object) -> object:
    """[]byte: standard base64, padded, without its line breaks. A list of byte values is encoded."""
    if isinstance(value, list) and all(is_byte(item) for item in value):
        return base64.b64encode(bytes(item or 0 for item in value)).decode()
    if value.__class__ is not str:
        raise TypeError
    text = value.translate(_NO_BREAKS)
    try:
        base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise FormatError(f"illegal base64 data at input byte {_bad_base64(text)}") from None
    return text


def is_byte(value: object) -> bool:
    """Whether it can be an item of a []byte that is written as a list. Null is 0."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _BYTE_MAX)


_BYTE_MAX = 255
_NO_BREAKS = {10: None, 13: None}
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _bad_base64(text: str) -> int:
    """The index at which a decoder that reads groups of four characters fails."""
    for index, char in enumerate(text):
        if char in _ALPHABET:
            continue
        place = index % 4
        if char != "=" or place < 2:
            return index
        if place == 3:
            return index + 1
        if index + 1 == len(text):
            return index + 1
        return index + 2 if text[index + 1] == "=" else index
    return len(text) - len(text) % 4
