"""The values of an apply configuration as Go has them.

upstream: staging/src/k8s.io/apiserver/pkg/cel/mutation/dynamic/objects.go#convertField
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import isfinite

from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.values import TypeValue, Uint, type_name
from kcm_cli.machinery.durations import format_duration
from kcm_cli.machinery.go_floats import go_float
from kcm_cli.machinery.times import as_utc
from kcm_cli.sandbox.apiserver.apply.gofmt import Foreign

_FIRST_EXPONENT = 1e21
"""Smaller floats without a fraction are integers."""


class NotNative(Exception):
    """A key of a map is no string."""


def native(value: cel.Value) -> object:
    """A value as JSON; what JSON does not have, such as CEL's null, is ``Foreign``. Raises NotNative."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise NotNative
        return {key: native(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [native(item) for item in value]
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, int) and not isinstance(value, Uint):
        return int(value)
    if isinstance(value, float) and isfinite(value):
        return int(value) if value.is_integer() and abs(value) < _FIRST_EXPONENT else value
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, cel.Optional) and value.present:
        return native(value.value)
    return _foreign(value)


def _foreign(value: cel.Value) -> Foreign:
    match value:
        case None:
            return Foreign("NULL_VALUE", "0", "structpb.NullValue")
        case int():
            return Foreign(str(int(value)), hex(value), "uint64")
        case float():
            return Foreign(go_float(value), go_float(value), "float64")
        case bytes():
            source = ", ".join(map(hex, value))
            return Foreign(f"[{' '.join(map(str, value))}]", f"[]uint8{{{source}}}", "[]uint8")
        case datetime():
            return _moment(as_utc(value))
        case timedelta():
            nanoseconds = (value // timedelta(microseconds=1)) * 1000
            return Foreign(format_duration(value.total_seconds()), str(nanoseconds), "time.Duration")
    name = type_name(value)
    return Foreign(name, name, name)


def _moment(at: datetime) -> Foreign:
    fraction = f".{at.microsecond:06}".rstrip("0").removesuffix(".")
    source = (
        f"time.Date({at.year}, time.{at:%B}, {at.day}, {at.hour}, {at.minute}, {at.second}, {at.microsecond * 1000}"
    )
    return Foreign(f"{at:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC", f"{source}, time.UTC)", "time.Time")
