"""Messages that are something else in JSON: times, quantities, raw documents, lists with a name.

upstream: apimachinery pkg/apis/meta/v1/{time_proto.go,micro_time_proto.go}, pkg/api/resource/quantity_proto.go,
pkg/util/intstr, pkg/runtime/types_proto.go (v1.36)
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from kcm_cli.machinery import codec, durations
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.protobuf.wire import fields, signed

Reader = Callable[[bytes], object]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def special(name: str) -> Reader | None:
    """How a message of that name is read, or None for an ordinary one."""
    return _READERS.get(name) or (_named_list if name.endswith(".ExtraValue") else None)


def _numbers(data: bytes) -> dict[int, int | bytes]:
    return dict(fields(data))


def _integer(found: dict[int, int | bytes], number: int) -> int:
    value = found.get(number, 0)
    if not isinstance(value, int):
        raise FormatError("wrong wireType")
    return signed(value)


def _bytes(found: dict[int, int | bytes], number: int) -> bytes:
    value = found.get(number, b"")
    if not isinstance(value, bytes):
        raise FormatError("wrong wireType")
    return value


def _time(data: bytes) -> str | None:
    """RFC 3339 in whole seconds; none for a time that is not set, which is an empty message."""
    return None if not data else f"{_moment(data):%Y-%m-%dT%H:%M:%SZ}"


def _micro_time(data: bytes) -> str | None:
    return None if not data else f"{_moment(data):%Y-%m-%dT%H:%M:%S.%fZ}"


def _moment(data: bytes) -> datetime:
    found = _numbers(data)
    try:
        return _EPOCH + timedelta(seconds=_integer(found, 1), microseconds=_integer(found, 2) // 1000)
    except OverflowError:
        raise FormatError("time out of range") from None


def _quantity(data: bytes) -> str:
    return _bytes(_numbers(data), 1).decode("utf-8", "replace")


def _int_or_string(data: bytes) -> int | str:
    found = _numbers(data)
    return _bytes(found, 3).decode("utf-8", "replace") if _integer(found, 1) else _integer(found, 2)


def _raw(data: bytes) -> object:
    raw = _bytes(_numbers(data), 1)
    try:
        return codec.decode(raw, object) if raw else None
    except codec.DecodeError as error:
        raise FormatError(str(error)) from None


def _duration(data: bytes) -> str:
    return durations.format_nanoseconds(_integer(_numbers(data), 1))


def _named_list(data: bytes) -> list[str]:
    return [
        value.decode("utf-8", "replace") for number, value in fields(data) if number == 1 and value.__class__ is bytes
    ]


_READERS: dict[str, Reader] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": _duration,
    "meta.v1.FieldsV1": _raw,
    "runtime.RawExtension": _raw,
    "resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
}
