"""Types of option values: how they are parsed from a flag, shown, and read from and written to a configuration file.

``word``: the type in the help. ``parse`` and ``from_doc`` raise ValueError with a text that completes "must ..." or
states the error.

upstream: the value types of spf13/pflag and staging/src/k8s.io/component-base/cli/flag
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from kcm_cli.component.flag_values import (
    bounded,
    parse_bool,
    parse_bytes,
    parse_cert_key,
    parse_float,
    parse_int,
    parse_ip,
    parse_level,
    parse_map,
    parse_multimap,
    parse_switches,
    parse_version_request,
    parse_vmodule,
    split_list,
)
from kcm_cli.machinery.durations import format_duration, parse_duration
from kcm_cli.machinery.go_floats import go_float, to_float32


class ValueType(msgspec.Struct, frozen=True):
    """One type of value. The functions take and return the Python type in the field's annotation."""

    word: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str]
    to_doc: Callable[[Any], object]
    from_doc: Callable[[object], Any]
    bare: str | None = None  # the text that stands for a flag given without a value
    join: Callable[[Any, Any], Any] | None = None  # what a repeated flag does; without it the last one wins
    quoted: bool = False  # whether help quotes the default
    zero: object = None  # the default that help leaves out
    blank_keeps: bool = False  # whether an empty text leaves the flag as it is


def _same(value: object) -> object:
    return value


def _typed(kind: type, name: str) -> Callable[[object], Any]:
    def read(value: object) -> object:
        if type(value) is not kind:
            raise ValueError(f"must be {name}")
        return value

    return read


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    if "\0" in value:  # which no path can have
        raise ValueError("must have no NUL")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError("must be a finite number")
    return number


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


def _int_kind(word: str, bits: int) -> ValueType:
    check = bounded(bits)
    return ValueType(word, lambda t: check(parse_int(t)), str, _same, lambda d: check(_whole(d)), zero=0)


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


def _to_float32(value: float) -> float:
    narrow = to_float32(value)
    if not math.isfinite(narrow):
        raise ValueError("does not fit in 32 bits")
    return narrow


def _no_flag(text: str) -> object:
    raise ValueError("has no flag")


BOOL = ValueType(
    "bool",
    parse_bool,
    lambda v: "true" if v else "false",
    _same,
    _typed(bool, "true or false"),
    bare="true",
    zero=False,
)
STRING = ValueType("string", str, str, _same, _text, quoted=True, zero="")
STRING_OR_BARE = replace(STRING, bare="true")
INT = _int_kind("int", 64)
INT32 = _int_kind("int32", 32)
FLOAT32 = ValueType(
    "float32",
    lambda t: _to_float32(parse_float(t)),
    go_float,
    _number_to_doc,
    lambda d: _to_float32(_number(d)),
    zero=0.0,
)
FLOAT = ValueType("float", parse_float, go_float, _number_to_doc, _number, zero=0.0)
DURATION = ValueType("duration", parse_duration, format_duration, format_duration, _duration_from_doc, zero=0.0)
STRINGS = ValueType("strings", split_list, _show_list, list, _texts, join=_join, zero=())
INT32_SLICE = ValueType(
    "int32Slice",
    lambda t: tuple(bounded(32)(parse_int(item)) for item in t.split(",")),
    _show_list,
    list,
    _file_only,
    join=_join,
    zero=(),
)
IP = ValueType("ip", parse_ip, str, _same, lambda d: parse_ip(_text(d)), blank_keeps=True)
STRING_MAP = ValueType("stringToString", parse_map, _show_pairs, dict, _file_only, join=_join_map, zero=())
SWITCHES = ValueType("mapStringString", parse_switches, _show_pairs, dict, _file_only, join=_join_map, zero=())
MULTIMAP = ValueType(
    "colonSeparatedMultimapStringString", parse_multimap, _show_multimap, list, _file_only, join=_join, zero=()
)
NAMED_CERT_KEY = ValueType(
    "namedCertKey",
    parse_cert_key,
    lambda v: "[" + ";".join(map(str, v)) + "]",
    list,
    _file_only,
    join=_join,
    zero=(),
)
LEVEL = ValueType("Level", parse_level, str, _same, _file_only)
VMODULE = ValueType("pattern=N,...", parse_vmodule, _show_vmodule, list, _file_only, zero=())
QUANTITY = ValueType("quantity", parse_bytes, str, _same, _file_only)
VERSION = ValueType("version", parse_version_request, str, _same, _file_only, bare="true", zero="false")
GROUP_RESOURCES = ValueType(
    "", _no_flag, _show_pairs, _pairs_to_doc("Group", "Resource"), _pairs_from_doc("Group", "Resource")
)
CONTROLLER_LEADERS = ValueType(
    "",
    _no_flag,
    _show_pairs,
    lambda v: _pairs_to_doc("name", "component")(v) if v else None,
    _pairs_from_doc("name", "component"),
)
