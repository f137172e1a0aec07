"""Quantities of resources, such as ``100m``, ``1.5Gi``, ``12e6``: exact numbers that keep their format.

Guarantees: immutable and hashable; equality and order are by number, regardless of the format; no floats are used. The
finest unit is a billionth: smaller amounts are rounded away from zero when parsed.

Not as upstream: a decimal exponent beyond 1000 is rejected (upstream takes unlimited memory), so are texts of more than
2000 characters, and results beyond 64 bits are exact where upstream returns 0. The text of a number beyond all suffixes
has its size, as in 1.38 (kubernetes#140459).
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import total_ordering
from typing import NamedTuple

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import SPACES
from kcm_cli.machinery.remembered import remembered

_PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_quantity = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?((?:(?:[eEinumkKMGTP]+[-+]?|[-+])[0-9]*)?)").fullmatch
_exponent = re.compile(r"[eE]([+-]?[0-9]+)").fullmatch

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent // 10: suffix for suffix, exponent in _BINARY.items()} | {0: ""}

_NANO = -9
_MAX = 2**63 - 1
_MAX_EXPONENT = 1000
_MAX_TEXT = 2000
_FAST_DIGITS = 18
_NO_NUMBER = "unable to parse numeric part of quantity"


class Format(StrEnum):
    """How a quantity is written."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """``amount`` × 10^``scale``. The amount has no trailing zeros, so that equal numbers are equal.

    text: the original text, if upstream would return it unchanged.
    """

    amount: int = 0
    scale: int = 0
    format: Format = Format.DECIMAL_SI
    text: str = ""

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.amount > 0) - (self.amount < 0)

    def value(self) -> int:
        """The number, rounded away from zero."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """The number in thousandths, rounded away from zero."""
        return self.scaled_value(-3)

    def scaled_value(self, scale: int) -> int:
        """The number in units of 10^``scale``, rounded away from zero."""
        return _rescale(self.amount, self.scale - scale)

    def rounded(self, scale: int) -> "Quantity":
        """The quantity rounded away from zero to a multiple of 10^``scale``."""
        return self if self.scale >= scale else make(self.scaled_value(scale), scale, self.format)

    def approximate(self) -> float:
        """The number as a float, which may lose precision."""
        return self.amount / 10**-self.scale if self.scale < 0 else float(self.amount * 10**self.scale)

    def __add__(self, other: "Quantity") -> "Quantity":
        scale = min(self.scale, other.scale)
        amount = _rescale(self.amount, self.scale - scale) + _rescale(other.amount, other.scale - scale)
        return make(amount, scale, self.format if self.amount else other.format)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return self.__add__(-other)

    def __neg__(self) -> "Quantity":
        return Quantity(-self.amount, self.scale, self.format)

    def __mul__(self, factor: int) -> "Quantity":
        return make(self.amount * factor, self.scale, self.format)

    def __bool__(self) -> bool:
        return self.amount != 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self.amount == other.amount and self.scale == other.scale

    def __lt__(self, other: "Quantity") -> bool:
        scale = min(self.scale, other.scale)
        return _rescale(self.amount, self.scale - scale) < _rescale(other.amount, other.scale - scale)

    def __hash__(self) -> int:
        return hash((self.amount, self.scale))

    def __str__(self) -> str:
        return self.text or _canonical(self)


ZERO = Quantity()


def make(amount: int, scale: int = 0, format_: Format = Format.DECIMAL_SI) -> Quantity:
    """The quantity ``amount`` × 10^``scale``."""
    if not amount:
        return Quantity(0, 0, format_)
    while amount % 10 == 0:
        amount //= 10
        scale += 1
    return Quantity(amount, scale, format_)


@remembered(4096)
def parse(text: str) -> Quantity:
    """Parse a quantity. Raises FormatError with upstream's texts."""
    held = parse_held(text)
    quantity = make(held.amount, held.scale, held.format)
    return Quantity(quantity.amount, quantity.scale, held.format, held.text) if held.text else quantity


def is_quantity(text: str) -> bool:
    """Whether a text can be parsed."""
    try:
        parse(text)
    except FormatError:
        return False
    return True


class Held(NamedTuple):
    """A quantity as upstream represents it, which the hash of a pod template depends on.

    big: whether it is an arbitrary-precision number. text: the original text, if upstream keeps it.
    """

    amount: int
    scale: int
    format: Format
    text: str
    big: bool


def parse_held(text: str) -> Held:
    """Parse a quantity into upstream's representation. Raises FormatError with upstream's texts."""
    if text == "0":
        return Held(0, 0, Format.DECIMAL_SI, text, big=False)
    if len(text) > _MAX_TEXT:
        raise FormatError(_NO_NUMBER)
    match = _quantity(text) if text else None
    if match is None:
        raise FormatError(f"quantities must match the regular expression '{_PATTERN}'")
    sign, whole, fraction, suffix = match.groups("")
    format_, exponent = _interpret(suffix)
    held = _held(text, "-" if sign == "-" else "", (whole.lstrip("0") or "0", fraction), format_, exponent)
    if held.big and not (whole or fraction):  # a suffix alone is 0 where upstream needs no big number
        raise FormatError(_NO_NUMBER)
    return held


def _held(text: str, sign: str, number: tuple[str, str], format_: Format, exponent: int) -> Held:
    whole, fraction = number
    digits = whole + fraction
    amount, scale = int(digits), -len(fraction)
    if format_ is Format.BINARY_SI:
        room = 15 - len(whole) - exponent * 3 // 10 - 1
        fast = not fraction and room >= 0 and amount << exponent <= _MAX
        kept = amount & 7 != 0
        amount <<= exponent
    else:
        scale += exponent
        fast = len(digits) <= _FAST_DIGITS and scale >= _NANO
        kept = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    if not fast:
        amount, scale, format_ = _held_big(amount, scale, format_)
    return Held(int(f"{sign}{amount}"), scale, format_, text if fast and kept else "", big=not fast)


def _held_big(amount: int, scale: int, format_: Format) -> tuple[int, int, Format]:
    amount = _rescale(amount, scale - _NANO)
    unit = _power_of_ten(-_NANO)
    if format_ is Format.BINARY_SI and amount > _MAX * unit:
        return _MAX, 0, format_
    if format_ is Format.BINARY_SI and 0 < amount < unit:
        format_ = Format.DECIMAL_SI  # so that it is not rounded up to 1
    return amount, _NANO, format_


def is_whole(value: str) -> bool:
    """Whether a quantity is an integer. Raises FormatError.

    upstream loses the size of large ones before 1.38 (kubernetes#141349, #142131)
    """
    return parse(value.strip(SPACES)).scale >= 0


def from_json(value: object) -> Quantity:
    """A quantity from a JSON string (surrounding spaces are ignored) or number. Raises FormatError."""
    if isinstance(value, str):
        return parse(value.strip(SPACES))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return parse(str(value))
    return ZERO if value is None else parse("x")


def _interpret(suffix: str) -> tuple[Format, int]:
    if suffix in _DECIMAL:
        return Format.DECIMAL_SI, _DECIMAL[suffix]
    if suffix in _BINARY:
        return Format.BINARY_SI, _BINARY[suffix]
    match = _exponent(suffix)
    if match is None or abs(exponent := int(match[1])) > _MAX_EXPONENT:
        raise FormatError("unable to parse quantity's suffix")
    return Format.DECIMAL_EXPONENT, exponent


def _canonical(quantity: Quantity) -> str:
    """The shortest text without a fraction, with the largest possible suffix. Numbers beyond all suffixes have an
    exponent."""
    amount, scale = quantity.amount, quantity.scale
    if not amount:
        return "0"
    suffixes = _DECIMAL_SUFFIX
    if quantity.format is Format.BINARY_SI and scale >= 0:
        whole = amount * 10**scale
        if abs(whole) >= 1024:
            text = _canonical_binary(whole)
            if text:
                return text
            suffixes = {0: ""}
    shift = scale % 3
    amount, scale = amount * 10**shift, scale - shift
    if quantity.format is Format.DECIMAL_EXPONENT or scale not in suffixes:
        return f"{amount}e{scale}" if scale else str(amount)
    return f"{amount}{suffixes[scale]}"


def _canonical_binary(whole: int) -> str:
    """The text with a binary suffix; empty for a multiple of 1024Ei, which has none."""
    power = 0
    while whole % 1024 == 0:
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIX[power]}" if power in _BINARY_SUFFIX else ""


def _rescale(amount: int, exponent: int) -> int:
    """amount × 10^exponent, rounded away from zero."""
    if exponent >= 0:
        return amount * _power_of_ten(exponent)
    divisor = _power_of_ten(-exponent)
    return -(-amount // divisor) if amount > 0 else amount // divisor


def _power_of_ten(exponent: int) -> int:
    power: int = 10**exponent
    return power
