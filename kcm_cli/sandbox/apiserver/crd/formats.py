"""Formats of strings in schemas. Unknown formats are ignored.

upstream: kube-openapi pkg/validation/strfmt, apiextensions-apiserver pkg/apiserver/validation/formats.go
"""

import ipaddress
import re
from collections.abc import Callable
from email.utils import parseaddr

from kcm_cli.machinery.addresses import parse_cidr, parse_ip
from kcm_cli.machinery.formats import is_base64, is_date
from kcm_cli.machinery.names import dns1123_label, dns1123_subdomain
from kcm_cli.machinery.urls import is_request

Check = Callable[[str], bool]


def _matches(pattern: str) -> Check:
    match = re.compile(pattern, re.ASCII).fullmatch
    return lambda text: match(text) is not None


_sign = r"[^\W_]|[$+<=>^`|~]"
_label = rf"(?:{_sign})(?:(?:{_sign}|-){{0,61}}(?:{_sign}))?"
_bare = rf"(?:{_sign})-?(?:{_sign}){{0,62}}"
"""Without dots only the second sign may be a hyphen, as in upstream."""
_hostname = re.compile(rf"(?:{_bare}|(?:{_label}\.)+[^\W\d_]{{2,63}})").fullmatch
_duration = re.compile(r"(?:[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[-+]?0", re.ASCII).fullmatch
_worded_duration = re.compile(
    r"(?<![0-9])[0-9]+[\t\n\f\r ]*"
    r"(?:ns|nano[a-z]*|us|µs|micro[a-zµ]*|ms|milli[a-zµ]*|s|sec[a-zµ]*|m|min[a-zµ]*|h|hr|hour[a-zµ]*|d|day[a-zµ]*|w|wk|week[a-zµ]*)(?![a-zµ])"
).search
_card = re.compile(
    r"(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})",
    re.ASCII,
).fullmatch
_rgb_part = r"(?:0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"


def _is_email(text: str) -> bool:
    try:
        address = parseaddr(text)[1]
    except RecursionError:  # of comments in comments
        return False
    local, at, domain = address.rpartition("@")
    return bool(at and local and domain) and " " not in address


def _is_hostname(text: str) -> bool:
    return len(text) <= 255 and _hostname(text) is not None


def _is_ipv4(text: str) -> bool:
    """Also one with leading zeros, and one that is mapped into IPv6."""
    return "." in text and parse_ip(text) is not None


def _is_ipv6(text: str) -> bool:
    try:
        return ":" in text and "%" not in text and bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    return parse_cidr(text) is not None


_CLOCK = re.compile(
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})"
)


def _is_date_time(text: str) -> bool:
    day, *rest = text.lower().split("t")
    clock = _CLOCK.fullmatch(rest[0]) if rest else None
    if clock is None or not is_date(day):
        return False
    return clock["hour"] <= "23" and clock["minute"] <= "59" and clock["second"] <= "59"


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    total = sum((index + 1) * (10 if char == "X" else int(char)) for index, char in enumerate(digits))
    return total % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum(int(char) * (3 if index % 2 else 1) for index, char in enumerate(digits)) % 10 == 0


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if _card(digits) is None:
        return False
    doubled = [int(char) * (2 if index % 2 else 1) for index, char in enumerate(reversed(digits))]
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


_HEX = "[0-9a-fA-F]"


def _uuid(third: str, fourth: str) -> Check:
    return _matches(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


_VARIANT = rf"[89abAB]{_HEX}{{3}}"
_ANY4 = rf"{_HEX}{{4}}"

_FORMATS: dict[str, Check] = {
    "bsonobjectid": _matches(rf"{_HEX}{{24}}"),
    "uri": is_request,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _matches(
        rf"(?:{_HEX}{{2}}(?::{_HEX}{{2}}){{5}}(?:(?::{_HEX}{{2}}){{2}}|(?::{_HEX}{{2}}){{14}})?"
        rf"|{_HEX}{{2}}(?:-{_HEX}{{2}}){{5}}(?:(?:-{_HEX}{{2}}){{2}})?|(?:{_HEX}{{4}}\.){{2,3}}{_HEX}{{4}}"
        rf"|{_HEX}{{12}}|{_HEX}{{16}}|{_HEX}{{40}})"
    ),
    "uuid": _uuid(_ANY4, _ANY4),
    "uuid3": _uuid(rf"3{_HEX}{{3}}", _ANY4),
    "uuid4": _uuid(rf"4{_HEX}{{3}}", _VARIANT),
    "uuid5": _uuid(rf"5{_HEX}{{3}}", _VARIANT),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_card,
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _matches(rf"#?(?:{_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _matches(rf"rgb\(\s*{_rgb_part}\s*,\s*{_rgb_part}\s*,\s*{_rgb_part}\s*\)"),
    "byte": lambda text: text != "" and is_base64(text),
    "password": lambda text: True,
    "date": is_date,
    "duration": lambda text: _duration(text) is not None or _worded_duration(text.lower()) is not None,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: not dns1123_label(text),
    "k8slongname": lambda text: not dns1123_subdomain(text),
}
"""The checks by format. Hyphens in names of formats are ignored."""

_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}


def check_of(format_: str) -> Check | None:
    """The check of a format, or None if it is unknown."""
    return _FORMATS.get(format_.replace("-", ""))


def known_number(format_: str, type_: str) -> bool:
    """Whether a format is known for a numeric type."""
    return format_ in _NUMBERS[type_]


def recognized(format_: str, type_: str) -> bool:
    """Whether a schema's format is known. ``type_`` may be empty."""
    if type_ in _NUMBERS:
        return known_number(format_, type_)
    return type_ in ("", "string") and check_of(format_) is not None
