"""Kubernetes' types in expressions: quantities, semantic versions, named formats.

upstream: staging/src/k8s.io/apiserver/pkg/cel/library/{quantity,semverlib,format}.go
"""

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

import msgspec

from kcm_cli.machinery import names, quantity
from kcm_cli.machinery.cel.overloads import Function, overloaded
from kcm_cli.machinery.cel.values import NONE, CelError, Optional, Value
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import is_base64, is_date
from kcm_cli.machinery.quantity import Quantity
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import parse_time
from kcm_cli.machinery.urls import UrlError, parse_request

_INT64 = range(-(1 << 63), 1 << 63)
_CORE = ("Major", "Minor", "Patch")
_DIGITS = "0123456789"
_letters = re.compile(r"[0-9A-Za-z-]+").fullmatch
_UINT64_DIGITS, _INT64_DIGITS = 20, 19
_uuid = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}").fullmatch
Methods = Mapping[str, Function]


class QuantityValue(msgspec.Struct, frozen=True, eq=False):
    """A quantity.

    small: as a number of 64 bits and its power of ten, if upstream holds it so. Whether it is an integer depends on it.

    upstream: apimachinery pkg/api/resource/{amount,quantity}.go
    """

    quantity: Quantity
    small: tuple[int, int] | None = None
    cel_type: ClassVar[str] = "kubernetes.Quantity"
    cel_methods: ClassVar[Methods]

    @staticmethod
    def parse(text: str) -> "QuantityValue":
        """Raises FormatError."""
        held = quantity.parse_held(text)
        return QuantityValue(quantity.parse(text), None if held.big else (held.amount, held.scale))

    def __str__(self) -> str:
        return str(self.quantity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.quantity == other.quantity

    def __hash__(self) -> int:
        return hash(self.quantity)

    def plus(self, other: "QuantityValue | int", sign: int = 1) -> "QuantityValue":
        """The sum; with a sign of -1 the difference."""
        more = QuantityValue(quantity.make(other), (other, 0)) if isinstance(other, int) else other
        return QuantityValue(self.quantity + more.quantity * sign, _sum(self.small, more.small, sign))

    def order(self, other: "QuantityValue") -> int:
        return (self.quantity - other.quantity).sign

    def integer(self) -> int:
        """The integer value. Raises CelError for a number that is not held as one: also of ``1.0`` and ``0.5Ki``."""
        value = None if self.small is None or self.small[1] < 0 else _times(*self.small)
        if value is None:
            raise CelError("cannot convert value to integer")
        return value

    def is_integer(self) -> bool:
        try:
            self.integer()
        except CelError:
            return False
        return True


def _sum(one: tuple[int, int] | None, other: tuple[int, int] | None, sign: int) -> tuple[int, int] | None:
    """The sum in the smaller power of ten; None if a number, or the sum, does not fit into 64 bits."""
    if one is None or other is None:
        return None
    if not other[0]:
        return one
    if not one[0]:
        return other[0] * sign, other[1]
    low = min(one[1], other[1])
    first, second = _times(one[0], one[1] - low), _times(sign * other[0], other[1] - low)
    if first is None or second is None or first + second not in _INT64:
        return None
    return first + second, low


def _times(amount: int, power: int) -> int | None:
    """amount × 10^power; None beyond 64 bits."""
    if amount and power >= _INT64_DIGITS:
        return None
    value: int = amount * 10**power if amount else 0
    return value if value in _INT64 else None


_Q = QuantityValue
QuantityValue.cel_methods = {
    "isInteger": overloaded("isInteger", ((_Q,), _Q.is_integer)),
    "asInteger": overloaded("asInteger", ((_Q,), _Q.integer)),
    "asApproximateFloat": overloaded("asApproximateFloat", ((_Q,), lambda value: value.quantity.approximate())),
    "sign": overloaded("sign", ((_Q,), lambda value: value.quantity.sign)),
    "add": overloaded("add", ((_Q, _Q), _Q.plus), ((_Q, int), _Q.plus)),
    "sub": overloaded(
        "sub",
        ((_Q, _Q), lambda one, other: one.plus(other, -1)),
        ((_Q, int), lambda one, other: one.plus(other, -1)),
    ),
    "isGreaterThan": overloaded("isGreaterThan", ((_Q, _Q), lambda one, other: one.order(other) > 0)),
    "isLessThan": overloaded("isLessThan", ((_Q, _Q), lambda one, other: one.order(other) < 0)),
    "compareTo": overloaded("compareTo", ((_Q, _Q), _Q.order)),
}


def _quantity(text: str) -> QuantityValue:
    try:
        return QuantityValue.parse(text)
    except FormatError as error:
        raise CelError(str(error)) from None


class SemverValue(msgspec.Struct, frozen=True):
    """A semantic version. Build metadata does not affect the order."""

    core: tuple[int, int, int]
    prerelease: tuple[str, ...] = ()
    cel_type: ClassVar[str] = "kubernetes.Semver"
    cel_methods: ClassVar[Methods]

    def order(self, other: "SemverValue") -> int:
        one, two = self._key(), other._key()
        return (one > two) - (one < two)

    def _key(self) -> tuple[object, ...]:
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.prerelease)
        return (self.core, 0 if self.prerelease else 1, parts)


_S = SemverValue
SemverValue.cel_methods = {
    "major": overloaded("major", ((_S,), lambda version: version.core[0])),
    "minor": overloaded("minor", ((_S,), lambda version: version.core[1])),
    "patch": overloaded("patch", ((_S,), lambda version: version.core[2])),
    "isGreaterThan": overloaded("isGreaterThan", ((_S, _S), lambda one, other: one.order(other) > 0)),
    "isLessThan": overloaded("isLessThan", ((_S, _S), lambda one, other: one.order(other) < 0)),
    "compareTo": overloaded("compareTo", ((_S, _S), _S.order)),
}


def version(text: str, normalize: bool = False) -> SemverValue:
    if normalize:
        text = _normalized(text)
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) < len(_CORE):
        raise CelError("No Major.Minor.Patch elements found")
    parts[2], plus, build = parts[2].partition("+")
    parts[2], dash, before = parts[2].partition("-")
    major, minor, patch = (_numbered(part, f"{name} number") for name, part in zip(_CORE, parts, strict=True))
    prerelease = tuple(map(_prerelease, before.split("."))) if dash else ()
    for part in build.split(".") if plus else ():
        if not part:
            raise CelError("Build meta data is empty")
        if not _letters(part):
            raise CelError(f"Invalid character(s) found in build meta data {quote(part)}")
    return SemverValue((major, minor, patch), prerelease)


def _numbered(text: str, what: str) -> int:
    if text.strip(_DIGITS):
        raise CelError(f"Invalid character(s) found in {what.lower()} {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{what} must not contain leading zeroes {quote(text)}")
    return _uint64(text)


def _prerelease(text: str) -> str:
    if not text:
        raise CelError("Prerelease is empty")
    if not text.strip(_DIGITS):
        _numbered(text, "Numeric PreRelease version")
    elif not _letters(text):
        raise CelError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _uint64(text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > _UINT64_DIGITS or int(text) >= 1 << 64:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def _normalized(text: str) -> str:
    """The version without a leading v and leading zeros, with all three numbers."""
    text = text.removeprefix("v")
    end = next((i for i, char in enumerate(text) if char in "-+"), len(text))
    numbers = [number.lstrip("0") or "0" for number in text[:end].split(".")] if text[:end] else []
    if len(numbers) < 3 and end < len(text):
        return text
    return ".".join([*numbers, *["0"] * (3 - len(numbers))]) + text[end:]


def _is(make: Callable[..., Value]) -> Callable[..., bool]:
    def run(*args: Value) -> bool:
        try:
            make(*args)
        except CelError:
            return False
        return True

    return run


class FormatValue(msgspec.Struct, frozen=True):
    """A named format of strings."""

    name: str
    problems: Callable[[str], list[str]]
    cel_type: ClassVar[str] = "kubernetes.NamedFormat"
    cel_methods: ClassVar[Methods]

    def validate(self, text: str) -> Optional:
        found = self.problems(text)
        return Optional(found, True) if found else NONE


FormatValue.cel_methods = {
    "validate": overloaded("validate", ((FormatValue, str), FormatValue.validate)),
}


def _masked(text: str) -> str:
    """A prefix of a name, in which a trailing dash is replaced, so that it can be validated as a name."""
    return f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text


def _problem(judge: Callable[[str], bool], message: str) -> Callable[[str], list[str]]:
    return lambda text: [] if judge(text) else [message]


def _is_datetime(text: str) -> bool:
    try:
        parse_time(text)
    except FormatError:
        return False
    return True


def _uri_problems(text: str) -> list[str]:
    try:
        parse_request(text)
    except UrlError as error:
        return [str(error)]
    return []


_FORMATS: Mapping[str, Callable[[str], list[str]]] = {
    "dns1123Label": names.dns1123_label,
    "dns1123Subdomain": names.dns1123_subdomain,
    "dns1035Label": names.dns1035_label,
    "qualifiedName": names.qualified_name,
    "dns1123LabelPrefix": lambda text: names.dns1123_label(_masked(text)),
    "dns1123SubdomainPrefix": lambda text: names.dns1123_subdomain(_masked(text)),
    "dns1035LabelPrefix": lambda text: names.dns1035_label(_masked(text)),
    "labelValue": names.label_value,
    "uri": _uri_problems,
    "uuid": _problem(lambda text: _uuid(text) is not None, "does not match the UUID format"),
    "byte": _problem(is_base64, "invalid base64"),
    "date": _problem(is_date, "invalid date"),
    "datetime": _problem(_is_datetime, "invalid datetime"),
}


def _named(name: str) -> Optional:
    found = _FORMATS.get(name)
    return NONE if found is None else Optional(FormatValue(name, found), True)


def _constant(name: str) -> Function:
    value = FormatValue(name, _FORMATS[name])
    return overloaded(f"format.{name}", ((), lambda: value))


def _pointer_part(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


FUNCTIONS: Mapping[str, Function] = {
    "quantity": overloaded("quantity", ((str,), _quantity)),
    "isQuantity": overloaded("isQuantity", ((str,), _is(_quantity))),
    "semver": overloaded("semver", ((str,), version), ((str, bool), version)),
    "isSemver": overloaded("isSemver", ((str,), _is(version)), ((str, bool), _is(version))),
    "jsonpatch.escapeKey": overloaded("jsonpatch.escapeKey", ((str,), _pointer_part)),
    "format.named": overloaded("format.named", ((str,), _named)),
    **{f"format.{name}": _constant(name) for name in _FORMATS},
}
