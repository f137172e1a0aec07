"""Messages with another form in JSON: times, quantities, raw documents, named lists, unions.

upstream: apimachinery pkg/apis/meta/v1/{time_proto.go,micro_time_proto.go}, pkg/api/resource/quantity_proto.go,
pkg/util/intstr, pkg/runtime/types_proto.go (v1.36)
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from kcm_cli.machinery import codec, durations
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.protofields import fields, signed
from kcm_cli.machinery.protowire import numbered, packed
from kcm_cli.machinery.times import format_micro_time, format_time, parse_micro_time, parse_time

Reader = Callable[[bytes], object]
Writer = Callable[[object], bytes]

_SCHEMA = "apiextensions.v1.JSONSchemaProps"
_CHOICES: dict[str, tuple[str, object]] = {
    f"{_SCHEMA}OrArray": ("jSONSchemas", []),
    f"{_SCHEMA}OrBool": ("allows", False),
    f"{_SCHEMA}OrStringArray": ("property", []),
}
"""Messages with a schema or another value: the field of the other value, and its zero."""
_NAMED_LISTS = (".ExtraValue", "meta.v1.Verbs")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def special(name: str) -> Reader | None:
    """The reader of a message, or None for an ordinary one."""
    return _READERS.get(name) or (_named_list if name.endswith(_NAMED_LISTS) else None)


def writer(name: str) -> Writer | None:
    """The writer of a message, or None for an ordinary one."""
    return _WRITERS.get(name) or (_write_named_list if name.endswith(_NAMED_LISTS) else None)


def chosen(name: str, doc: Doc) -> object:
    """The JSON value of a decoded message: one of its fields for a message in ``_CHOICES``, otherwise ``doc``."""
    if name not in _CHOICES:
        return doc
    field, nothing = _CHOICES[name]
    value = doc.get(field, nothing)
    listed = isinstance(value, list) and bool(value)
    return doc["schema"] if "schema" in doc and not listed else value


def choice(name: str, value: object) -> object:
    """The message of a JSON value: the inverse of ``chosen``."""
    if name not in _CHOICES:
        return value
    field, _ = _CHOICES[name]
    if not isinstance(value, dict):
        return {field: value}
    return {"schema": value, "allows": True} if field == "allows" else {"schema": value}


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
    """RFC 3339 in whole seconds; None for an empty message, which is an unset time."""
    return None if not data else format_time(_moment(data))


def _micro_time(data: bytes) -> str | None:
    return None if not data else format_micro_time(_moment(data))


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
    "apiextensions.v1.JSON": _raw,
    "resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
}


def _write_time(value: object) -> bytes:
    return numbered(1, (parse_time(str(value)) - _EPOCH) // _SECOND)


def _write_micro_time(value: object) -> bytes:
    moment = parse_micro_time(str(value))
    return numbered(1, (moment - _EPOCH) // _SECOND) + numbered(2, moment.microsecond * 1000)


def _write_quantity(value: object) -> bytes:
    return packed(1, str(value).encode())


def _write_int_or_string(value: object) -> bytes:
    if isinstance(value, int):
        return numbered(1, 0) + numbered(2, value)
    return numbered(1, 1) + packed(3, str(value).encode())


def _write_raw(value: object) -> bytes:
    return packed(1, codec.encode(value))


def _write_duration(value: object) -> bytes:
    return numbered(1, durations.parse_nanoseconds(str(value)))


def _write_named_list(value: object) -> bytes:
    return b"".join([packed(1, str(item).encode()) for item in value]) if isinstance(value, list) else b""


_WRITERS: dict[str, Writer] = {
    "meta.v1.Time": _write_time,
    "meta.v1.MicroTime": _write_micro_time,
    "meta.v1.Duration": _write_duration,
    "meta.v1.FieldsV1": _write_raw,
    "runtime.RawExtension": _write_raw,
    "apiextensions.v1.JSON": _write_raw,
    "resource.Quantity": _write_quantity,
    "util.intstr.IntOrString": _write_int_or_string,
}
