"""Floats as Go prints them."""

import math
import struct
from decimal import Decimal


def go_float(value: float) -> str:
    """A number in the format of Go's ``%g``: the fewest exact digits, with an exponent below 1e-4 and from 1e6."""
    text = repr(float(value))
    if not value or 1e-4 <= abs(value) < 1e6:
        return text.removesuffix(".0")
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    digits = Decimal(text).normalize()
    exponent = digits.adjusted()
    return f"{digits.scaleb(-exponent):f}e{exponent:+03d}"


def to_float32(value: float) -> float:
    """The number with the shortest decimal form of the same 32 bit float, which Go prints for a float32. Beyond the
    range it is infinite.
    """
    packed = _pack32(value)
    if packed is None:
        return math.copysign(math.inf, value)
    if not math.isfinite(value):
        return value
    (narrow,) = struct.unpack("<f", packed)
    return next(short for n in range(1, 10) if _pack32(short := float(f"{narrow:.{n}g}")) == packed)


def _pack32(value: float) -> bytes | None:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return None
