"""Parses values of flags.

Parsing functions raise ValueError (FormatError is one) with a text that completes "must ..." or states the error; the
caller adds the flag or the field's path.

upstream: the value types of spf13/pflag and staging/src/k8s.io/component-base/cli/flag
"""

import math
import re
from collections.abc import Callable

import msgspec

from kcm_cli.component.version import GIT_VERSION
from kcm_cli.machinery import addresses, booleans, quantity
from kcm_cli.machinery.formats import SPACES
from kcm_cli.machinery.quoting import quote

_integer = re.compile(r"[+-]?(0[xX](_?[0-9a-fA-F])+|0[bB](_?[01])+|0[oO]?(_?[0-7])+|0|[1-9](_?[0-9])*)")


def parse_bool(text: str) -> bool:
    """A boolean. Raises ValueError."""
    read = booleans.parse_bool(text)
    if read is None:
        raise ValueError("must be true or false")
    return read


def parse_int(text: str) -> int:
    """A whole number: decimal, 0x, 0o (or a leading 0), 0b, with underscores between digits."""
    if not _integer.fullmatch(text):
        raise ValueError("must be a whole number")
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1] in "01234567_":
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def bounded(bits: int) -> Callable[[int], int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: int) -> int:
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return check


def parse_float(text: str) -> float:
    """A finite number without blanks. Both Go and Python take underscores between digits; Python takes digits of other
    scripts, too."""
    if not text.isascii() or not text or text != text.strip():
        raise ValueError("must be a number")
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


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


def parse_switches(text: str) -> tuple[tuple[str, str], ...]:
    """``k=v,k2``: a key alone is true."""
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (each.strip() for each in part.partition("="))
        if part:
            found[key] = value if equals else "true"
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
    address = addresses.parse_ip(text.strip(SPACES))
    if address is None:
        raise ValueError("must be an IP address")
    return str(address)


def parse_bytes(text: str) -> int:
    """A number of bytes: 512, 1K, 2Ki, 3M."""
    return quantity.parse(text).value()


def parse_level(text: str) -> int:
    """A log verbosity: digits only, as klog reads it."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError("must be a whole number")
    return bounded(32)(int(text))


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


class CertKey(msgspec.Struct, frozen=True):
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
    """``true``, ``false``, ``raw``, or ``vX.Y.Z...`` to report the version with something added."""
    if text == "raw":
        return text
    if number := re.fullmatch(r"(v\d+\.\d+\.\d+)(-[\w.-]+)?(\+[\w.-]+)?", text, re.ASCII):
        if number[1] != GIT_VERSION:
            raise ValueError(f"must begin with {GIT_VERSION}, which is what this is")
        return text
    try:
        return "true" if parse_bool(text) else "false"
    except ValueError:
        raise ValueError("must be true, false, raw or vX.Y.Z") from None
