"""Kinds of flag values: how a value is read from a command line, shown again, and written in a configuration file.

``word`` is the type word that help prints. Every ``parse`` and ``from_doc`` raises ValueError (FormatError is one)
with a text that completes "must ..." or says what is wrong; the flag or the field's path is added by the caller.

upstream: the value types of spf13/pflag and staging/src/k8s.io/component-base/cli/flag
"""

import ipaddress
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kcm_cli.machinery import quantity
from kcm_cli.machinery.durations import format_duration, parse_duration
from kcm_cli.machinery.quoting import quote

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_integer = re.compile(r"[+-]?(0[xX](_?[0-9a-fA-F])+|0[bB](_?[01])+|0[oO]?(_?[0-7])+|0|[1-9](_?[0-9])*)")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value. The callables take and give the value's own type, which the fields' annotations state."""

    word: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    to_doc: Callable[[Any], object]
    from_doc: Callable[[object], Any]
    bare: str | None = None  # the text that stands for a flag given without a value
    join: Callable[[Any, Any], Any] | None = None  # what a repeated flag does; without it the last one wins
    quoted: bool = False  # whether help quotes the default
    zero: object = None  # the default that help leaves out


def parse_bool(text: str) -> bool:
    """A truth value as Go reads it."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError("must be true or false")


def parse_int(text: str) -> int:
    """A whole number: decimal, 0x, 0o (or a leading 0), 0b, with underscores between digits."""
    if not _integer.fullmatch(text):
        raise ValueError("must be a whole number")
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567_":
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def _bounded(bits: int) -> Callable[[int], int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return check


def parse_float(text: str) -> float:
    """A number; no blanks, neither infinite nor NaN."""
    if not text or text != text.strip():
        raise ValueError("must be a number")
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def to_float32(value: float) -> float:
    """The shortest decimal that is the same 32 bit number: what Go prints for a float32."""
    packed = _pack32(value)
    if packed is None:
        raise ValueError("does not fit in 32 bits")
    return next(short for n in range(1, 10) if _pack32(short := float(f"{value:.{n}g}")) == packed)


def _pack32(value: float) -> bytes | None:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return None


def show_float(value: float) -> str:
    """A number as Go's shortest ``%g`` prints it."""
    exponent = f"{value:.16e}".partition("e")[2]
    digits = next(n for n in range(17) if float(f"{value:.{n}e}") == value)
    if -4 <= int(exponent) < 6:
        return repr(float(value)).removesuffix(".0")
    return f"{value:.{digits}e}"


def split_list(text: str) -> tuple[str, ...]:
    """Comma separated texts; an item may be quoted as in CSV."""
    if text == "":
        return ()
    items, rest = [], text
    while True:
        if rest.startswith('"'):
            match = re.match(r'"((?:[^"]|"")*)"(,|$)', rest)
            if match is None:
                raise ValueError("must be a comma separated list with well-formed quotes")
            items.append(match[1].replace('""', '"'))
        else:
            match = re.match(r'([^",]*)(,|$)', rest)
            if match is None:
                raise ValueError("must be a comma separated list with well-formed quotes")
            items.append(match[1])
        rest = rest[match.end() :]
        if not match[2]:
            return tuple(items)


def parse_map(text: str) -> tuple[tuple[str, str], ...]:
    """``k=v,k2=v2``; one pair alone may have commas in its value, several need quotes around such a pair."""
    pairs = split_list(text) if text.count("=") > 1 else (text.strip('"'),)
    found: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"must be key=value pairs, and {quote(pair)} is none")
        found[key] = value
    return tuple(found.items())


def parse_multimap(text: str) -> tuple[tuple[str, str], ...]:
    """``component:value,value``; without a component the key is empty."""
    pairs = []
    for pair in text.split(","):
        if pair:
            first, colon, second = pair.partition(":")
            pairs.append((first.strip(), second.strip()) if colon else ("", first.strip()))
    return tuple(pairs)


def parse_ip(text: str) -> str:
    """An IPv4 or IPv6 address."""
    try:
        return str(ipaddress.ip_address(text.strip()))
    except ValueError:
        raise ValueError("must be an IP address") from None


def parse_bytes(text: str) -> int:
    """A number of bytes: 512, 1K, 2Ki, 3M."""
    return quantity.parse(text).value()


def parse_level(text: str) -> int:
    """A log verbosity."""
    value = _bounded(32)(parse_int(text))
    if value < 0:
        raise ValueError("must not be negative")
    return value


def parse_vmodule(text: str) -> tuple[tuple[str, int], ...]:
    """``pattern=N,...``: verbosity per source file."""
    found = []
    for item in text.split(","):
        if not item:
            continue
        pattern, equals, level = item.partition("=")
        if not equals or not pattern or not level or "=" in level:
            raise ValueError(f"must be pattern=N pairs, and {quote(item)} is none")
        found.append((pattern, parse_level(level)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CertKey:
    """A certificate and key for some server names (all names in the certificate where there are none)."""

    cert_file: str
    key_file: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.cert_file},{self.key_file}" + (":" + ",".join(self.names) if self.names else "")


def parse_cert_key(text: str) -> tuple[CertKey, ...]:
    """``certfile,keyfile`` or ``certfile,keyfile:name,name``."""
    files, colon, names = text.partition(":")
    if colon and not names.strip():
        raise ValueError("must name at least one server after the colon")
    cert, comma, key = files.strip().partition(",")
    if not comma or "," in key:
        raise ValueError("must be a certificate file and a key file with a comma between")
    wanted = tuple(name.strip() for name in names.split(",")) if colon else ()
    return (CertKey(cert.strip(), key.strip(), wanted),)


def parse_version_request(text: str) -> str:
    """``true``, ``false``, ``raw``, or ``vX.Y.Z...`` to report another version."""
    if text == "raw" or re.fullmatch(r"v\d+\.\d+\.\d+\S*", text):
        return text
    try:
        return "true" if parse_bool(text) else "false"
    except ValueError:
        raise ValueError("must be true, false, raw or vX.Y.Z") from None


def _same(value: object) -> object:
    return value


def _typed(kind: type, name: str) -> Callable[[object], Any]:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise ValueError(f"must be {name}")
        return value

    return read


_text = _typed(str, "a string")


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise ValueError("must be a number")
    return float(value)  # type: ignore[arg-type]  # an int or a float


def _whole(value: object) -> int:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise ValueError("must be a whole number")
    return value


def _number_to_doc(value: float) -> object:
    return int(value) if float(value).is_integer() else value


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError("must be a list of strings")
    return tuple(value)


def _join(first: tuple[object, ...], second: tuple[object, ...]) -> tuple[object, ...]:
    return first + second


def _join_map(first: tuple[tuple[str, str], ...], second: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple({**dict(first), **dict(second)}.items())


def _show_list(value: tuple[object, ...]) -> str:
    return "[" + ",".join(map(str, value)) + "]"


def _show_pairs(value: tuple[tuple[str, str], ...]) -> str:
    return "[" + ",".join(f"{k}={v}" for k, v in value) + "]"


def _show_multimap(value: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{k}:{v}" for k, v in sorted(value, key=lambda pair: pair[0]))


def _show_vmodule(value: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{pattern}={level}" for pattern, level in value)


def _file_only(value: object) -> object:
    raise ValueError("cannot be set in a configuration file")


def _duration_from_doc(value: object) -> float:
    return parse_duration(_text(value))


def _duration(text: str) -> float:
    return parse_duration(text)


def _int_kind(word: str, bits: int) -> Kind:
    check = _bounded(bits)
    return Kind(word, lambda t: check(parse_int(t)), str, _same, lambda d: check(_whole(d)), zero=0)


def _pairs_from_doc(first: str, second: str) -> Callable[[object], tuple[tuple[str, str], ...]]:
    def read(value: object) -> tuple[tuple[str, str], ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            raise ValueError(f"must be a list of objects with {first} and {second}")
        return tuple(_pair(item, first, second) for item in value)

    return read


def _pair(item: object, first: str, second: str) -> tuple[str, str]:
    if not isinstance(item, dict) or not set(item) <= {first, second}:
        raise ValueError(f"must be a list of objects with {first} and {second}")
    return _text(item.get(first, "")), _text(item.get(second, ""))


def _pairs_to_doc(first: str, second: str) -> Callable[[tuple[tuple[str, str], ...]], object]:
    return lambda value: [{first: a, second: b} for a, b in value]


def _no_flag(text: str) -> object:
    raise ValueError("has no flag")


BOOL = Kind(
    "bool",
    parse_bool,
    lambda v: "true" if v else "false",
    _same,
    _typed(bool, "true or false"),
    bare="true",
    zero=False,
)
STRING = Kind("string", str, str, _same, _text, quoted=True, zero="")
STRING_OR_BARE = replace(STRING, bare="true")
INT = _int_kind("int", 64)
INT32 = _int_kind("int32", 32)
FLOAT32 = Kind(
    "float32",
    lambda t: to_float32(parse_float(t)),
    show_float,
    _number_to_doc,
    lambda d: to_float32(_number(d)),
    zero=0.0,
)
FLOAT = Kind("float", parse_float, show_float, _number_to_doc, _number, zero=0.0)
DURATION = Kind("duration", _duration, format_duration, format_duration, _duration_from_doc, zero=0.0)
STRINGS = Kind("strings", split_list, _show_list, list, _texts, join=_join, zero=())
INT32_SLICE = Kind(
    "int32Slice",
    lambda t: tuple(_bounded(32)(parse_int(item.strip())) for item in t.split(",")),
    _show_list,
    list,
    _file_only,
    join=_join,
    zero=(),
)
IP = Kind("ip", parse_ip, str, _same, lambda d: parse_ip(_text(d)))
STRING_MAP = Kind("stringToString", parse_map, _show_pairs, dict, _file_only, join=_join_map, zero=())
MULTIMAP = Kind(
    "colonSeparatedMultimapStringString", parse_multimap, _show_multimap, list, _file_only, join=_join, zero=()
)
NAMED_CERT_KEY = Kind(
    "namedCertKey",
    parse_cert_key,
    lambda v: "[" + ";".join(map(str, v)) + "]",
    list,
    _file_only,
    join=_join,
    zero=(),
)
LEVEL = Kind("Level", parse_level, str, _same, _file_only)
VMODULE = Kind("pattern=N,...", parse_vmodule, _show_vmodule, list, _file_only, zero=())
QUANTITY = Kind("quantity", parse_bytes, str, _same, _file_only)
VERSION = Kind("version", parse_version_request, str, _same, _file_only, bare="true", zero="false")
GROUP_RESOURCES = Kind(
    "", _no_flag, _show_pairs, _pairs_to_doc("Group", "Resource"), _pairs_from_doc("Group", "Resource")
)
CONTROLLER_LEADERS = Kind(
    "",
    _no_flag,
    _show_pairs,
    lambda v: _pairs_to_doc("name", "component")(v) if v else None,
    _pairs_from_doc("name", "component"),
)
