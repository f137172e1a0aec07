"""The functions of CEL and of Kubernetes' libraries.

upstream: cel-go common/stdlib, staging/src/k8s.io/apiserver/pkg/cel/environment/base.go (v1.36)
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kcm_cli.machinery.booleans import parse_bool
from kcm_cli.machinery.cel import formatting, kubernetes, list_functions, networks, string_functions
from kcm_cli.machinery.cel.operators import no_overload
from kcm_cli.machinery.cel.overloads import DURATION, LIST, MAP, TIMESTAMP, Function, overloaded
from kcm_cli.machinery.cel.texts import simple_text, zoned_time
from kcm_cli.machinery.cel.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    TYPES,
    UINT_MAX,
    CelError,
    Duration,
    Optional,
    TypeValue,
    Uint,
    Value,
    type_name,
)
from kcm_cli.machinery.durations import parse_nanoseconds
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.times import FIRST, LAST, as_utc

_ZERO_OFFSET = {"", "UTC", "Z"}
_MICROSECOND = timedelta(microseconds=1)
_HEX_FLOAT = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")


def _size(value: Value) -> int:
    assert isinstance(value, (str, bytes, list, tuple, Mapping))
    return len(value)


_is_int = re.compile(r"[-+]?[0-9]+").fullmatch
_is_uint = re.compile(r"[0-9]+").fullmatch
_LONG = 1000


def _not_of_text(kind: str) -> CelError:
    return CelError(f"type conversion error from 'string' to '{kind}'")


def _int_of_text(text: str) -> int:
    if not _is_int(text):
        raise _not_of_text("int")
    value = int(text) if len(text) < _LONG else INT_MAX + 1
    if not INT_MIN <= value <= INT_MAX:
        raise _not_of_text("int")
    return value


def _uint_of_text(text: str) -> Uint:
    if not _is_uint(text):
        raise _not_of_text("uint")
    value = int(text) if len(text) < _LONG else UINT_MAX + 1
    if value > UINT_MAX:
        raise _not_of_text("uint")
    return Uint(value)


def _int_of_float(value: float) -> int:
    if value != value or not -(2.0**63) < value < 2.0**63:
        raise CelError("integer overflow")
    return int(value)


def _uint_of_number(value: float) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return Uint(int(value))


def _int_of_uint(value: int) -> int:
    if value > INT_MAX:
        raise CelError("integer overflow")
    return int(value)


def _float_of_text(text: str) -> float:
    try:
        if not text.isascii() or "_" in text or text != text.strip():
            raise ValueError(text)
        if _HEX_FLOAT.fullmatch(text):
            return float.fromhex(text)
        found = float(text)
        if math.isinf(found) and "inf" not in text.lower():
            raise ValueError(text)
        return found
    except (ValueError, OverflowError):
        raise _not_of_text("double") from None


def _bool_of_text(text: str) -> bool:
    read = parse_bool(text)
    if read is None:
        raise _not_of_text("bool")
    return read


def text_of(value: Value) -> str:
    """``string(value)``. Raises CelError."""
    if (text := simple_text(value)) is not None:
        return text
    if isinstance(value, (kubernetes.QuantityValue, networks.IpValue, networks.CidrValue)):
        return str(value)
    raise no_overload("string", value)


def _timestamp(text: str) -> datetime:
    try:
        moment = zoned_time(text)
    except FormatError:
        raise _not_of_text("google.protobuf.Timestamp") from None
    if moment is FIRST or moment is LAST:
        raise CelError("timestamp overflow")
    return moment


def _duration(text: str) -> Duration:
    try:
        return Duration(microseconds=parse_nanoseconds(text) / 1000)
    except FormatError:
        raise _not_of_text("google.protobuf.Duration") from None


def _type(value: Value) -> TypeValue:
    if isinstance(value, TypeValue):
        return TYPES["type"]
    name = type_name(value)
    return TYPES.get(name) or TypeValue(name)


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise CelError("timestamp overflow") from None


def _is_zero(value: Value) -> bool:
    if isinstance(value, (datetime, TypeValue)):
        return False
    return value is None or not value


FUNCTIONS: Mapping[str, Function] = {
    "size": overloaded("size", ((str,), _size), ((bytes,), _size), ((LIST,), _size), ((MAP,), _size)),
    "type": _type,
    "dyn": lambda value: value,
    "bool": overloaded("bool", ((bool,), bool), ((str,), _bool_of_text)),
    "bytes": overloaded("bytes", ((bytes,), bytes), ((str,), str.encode)),
    "double": overloaded("double", ((float,), float), ((int,), float), ((Uint,), float), ((str,), _float_of_text)),
    "int": overloaded(
        "int",
        ((int,), int),
        ((Uint,), _int_of_uint),
        ((float,), _int_of_float),
        ((str,), _int_of_text),
        ((TIMESTAMP,), lambda moment: int(moment.timestamp())),
        ((DURATION,), lambda length: length // _MICROSECOND * 1000),
    ),
    "uint": overloaded(
        "uint",
        ((Uint,), Uint),
        ((int,), _uint_of_number),
        ((float,), _uint_of_number),
        ((str,), _uint_of_text),
    ),
    "string": text_of,
    "timestamp": overloaded(
        "timestamp",
        ((str,), _timestamp),
        ((TIMESTAMP,), as_utc),
        ((int,), _moment),
    ),
    "duration": overloaded(
        "duration",
        ((str,), _duration),
        ((DURATION,), Duration.of),
        ((int,), lambda nanoseconds: Duration(microseconds=nanoseconds / 1000)),
    ),
    "matches": string_functions.matches,
    "optional.of": lambda value: Optional(value, True),
    "optional.none": lambda: NONE,
    "optional.unwrap": overloaded("optional.unwrap", ((LIST,), lambda items: _unwrapped(items))),
    "optional.ofNonZeroValue": lambda value: NONE if _is_zero(value) else Optional(value, True),
    **list_functions.FUNCTIONS,
    **string_functions.FUNCTIONS,
    **kubernetes.FUNCTIONS,
    **networks.FUNCTIONS,
}


def _zoned(moment: datetime, zone: str) -> datetime:
    if zone in _ZERO_OFFSET:
        return as_utc(moment)
    if ":" in zone:
        sign = -1 if zone.startswith("-") else 1
        hours, _, minutes = zone.lstrip("+-").partition(":")
        try:
            offset = timedelta(hours=_int_of_text(hours), minutes=_int_of_text(minutes))
            return moment.astimezone(timezone(sign * offset))
        except (ValueError, OverflowError) as error:
            raise CelError(str(error)) from None
    try:
        return moment.astimezone(ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        raise CelError(f"unknown time zone {zone}") from None


def _part(name: str, read: "Function", of_duration: "Function | None" = None) -> Function:
    choices: list[tuple[tuple[type, ...], Function]] = [
        ((TIMESTAMP,), lambda moment: read(as_utc(moment))),
        ((TIMESTAMP, str), lambda moment, zone: read(_zoned(moment, zone))),
    ]
    if of_duration is not None:
        choices.append(((DURATION,), of_duration))
    return overloaded(name, *choices)


def _whole(unit_s: float) -> Function:
    return lambda length: int(length.total_seconds() / unit_s)


METHODS: Mapping[str, Function] = {
    "size": FUNCTIONS["size"],
    "hasValue": overloaded("hasValue", ((Optional,), lambda value: value.present)),
    "value": overloaded("value", ((Optional,), lambda value: _value(value))),
    "getFullYear": _part("getFullYear", lambda moment: moment.year),
    "getMonth": _part("getMonth", lambda moment: moment.month - 1),
    "getDate": _part("getDate", lambda moment: moment.day),
    "getDayOfMonth": _part("getDayOfMonth", lambda moment: moment.day - 1),
    "getDayOfWeek": _part("getDayOfWeek", lambda moment: (moment.weekday() + 1) % 7),
    "getDayOfYear": _part("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _part("getHours", lambda moment: moment.hour, _whole(3600)),
    "getMinutes": _part("getMinutes", lambda moment: moment.minute, _whole(60)),
    "getSeconds": _part("getSeconds", lambda moment: moment.second, _whole(1)),
    "getMilliseconds": _part(
        "getMilliseconds", lambda moment: moment.microsecond // 1000, lambda length: length.microseconds // 1000
    ),
    **string_functions.METHODS,
    **formatting.METHODS,
    **list_functions.METHODS,
    "indexOf": lambda value, *args: _either("indexOf", value, *args),
    "lastIndexOf": lambda value, *args: _either("lastIndexOf", value, *args),
    "reverse": lambda value, *args: _either("reverse", value, *args),
    "unwrapOpt": overloaded("unwrapOpt", ((LIST,), lambda items: _unwrapped(items))),
}


def _either(name: str, value: Value, *args: Value) -> Value:
    """A method that strings and lists both have."""
    table = string_functions.METHODS if isinstance(value, str) else list_functions.METHODS
    return table[name](value, *args)


def _value(optional: Optional) -> Value:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


def _unwrapped(items: list[Value]) -> list[Value]:
    found: list[Value] = []
    for item in items:
        if not isinstance(item, Optional):
            raise CelError("value in list is not optional")
        if item.present:
            found.append(item.value)
    return found
