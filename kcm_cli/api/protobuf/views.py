"""Reads views from protobuf. A view is declared once; its decoders for JSON and for protobuf are made from that.

A reader has a function that is written for the view and its message, and made at first use: upb parses the message by a
descriptor that has the declared fields only, and the function makes the structs. Their values are those that the JSON
form of the same object has:

- A field that may be None is a pointer in Go, and is None where the message does not have it. Others are always sent; a
  zero is the field's default.
- Bytes that are not UTF-8 are U+FFFD, as in the JSON of the API server.
- Fields that the table of this version does not have are skipped, as are all that the view does not have.
- Documents (``Doc``) have zeros where JSON leaves them out. API servers see no difference.

Times, maps, and views that are ``SHARED`` are the same in many objects. They are made from their bytes, and equal bytes
give the same value, which nobody changes.

A view with fields of other types has no reader, and where ``protobuf`` is not upb no view has: its objects are read in
JSON.

upstream: none; Go has generated code for each type
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from kcm_cli.api.protobuf.decoding import document
from kcm_cli.api.protobuf.messages import Field, message
from kcm_cli.api.protobuf.special import special
from kcm_cli.machinery import codec, upb
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.upb import BOOL, BYTES, INT64, MESSAGE, STRING, Declared, Parse

T = TypeVar("T")
K = TypeVar("K", bytes, tuple[bytes, ...])

LONGEST = 512
"""Bytes of a map or list that is kept to be shared."""
KEPT = 1024
"""Values that are kept of each sort."""
Path = tuple[int, ...]
"""Numbers of embedded messages."""
_TIMES = ("meta.v1.Time", "meta.v1.MicroTime")
_QUANTITY = "resource.Quantity"
_INT_OR_STRING = "util.intstr.IntOrString"
_SCALARS = {"int": INT64, "bool": BOOL, "string": STRING}
_LEAVES: dict[str, type] = {"int": inspect.IntType, "bool": inspect.BoolType, "string": inspect.StrType}


class _Unsupported(Exception):
    """A view has a field that cannot be read from protobuf."""


class _Made(msgspec.Struct, frozen=True):
    parse: Parse
    view: Callable[[Any], Any]


class Reader(Generic[T]):
    """Reads one view from one kind of message."""

    def __init__(self, view: Any, name: str) -> None:
        self._view, self._name = view, name
        self._strict = _made(view, name, lenient=False)
        self._errors = upb.decode_error()

    def read(self, data: bytes) -> T:
        """The view of a message. Raises codec.DecodeError."""
        made = self._strict
        try:
            try:
                return made.view(made.parse(data))  # type: ignore[no-any-return]
            except self._errors:  # perhaps of strings alone
                made = _made(self._view, self._name, lenient=True)
                return made.view(made.parse(data))  # type: ignore[no-any-return]
        except self._errors as error:
            raise codec.DecodeError(f"protobuf is malformed: {error}") from None
        except FormatError as error:
            raise codec.ShapeError(str(error)) from None


def reader_of(view: type[T], name: str) -> Reader[T] | None:
    """The reader of a view from a message (``core.v1.Pod``); None where there is none."""
    key: Any = view
    return _reader_of(key, name)


@cache
def _reader_of(view: Any, name: str) -> Reader[Any] | None:
    if message(name) is None or not upb.available():
        return None
    try:
        return Reader(view, name)
    except _Unsupported:
        return None


@cache
def _made(view: Any, name: str, *, lenient: bool) -> _Made:
    """lenient: strings are bytes, and decoded with U+FFFD for what is not UTF-8."""
    writer = _Writer(lenient=lenient)
    info = inspect.type_info(view)
    assert isinstance(info, inspect.StructType)
    place = writer.message(info, name)
    parse = upb.parsers(writer.messages.items())[place]
    names = writer.names
    exec(compile("\n".join(writer.source), f"<reader of {view.__name__} from {name}>", "exec"), names)
    return _Made(parse, names[f"read_{place}"])


class _Writer:
    """Writes the functions of one reader, and the messages that they read."""

    def __init__(self, *, lenient: bool) -> None:
        self.source: list[str] = []
        self.messages: dict[str, list[Declared]] = {}
        self.names: dict[str, Any] = {
            "time": _time,
            "micro_time": _micro_time,
            "quantity": _quantity,
            "int_or_string": _int_or_string,
            "document": document,
            "text": _text,
        }
        self._lenient = lenient
        self._places: dict[tuple[type, str], str] = {}

    def message(self, info: inspect.StructType, name: str) -> str:
        """Write the function for a view of a message, and those that it calls; the name that it has here."""
        known = self._places.get((info.cls, name))
        if known is not None:
            return known
        place = self._places[(info.cls, name)] = f"m{len(self._places)}"
        self.names[f"view_{place}"] = info.cls
        found: dict[Path, list[str]] = {(): []}
        """Arguments by the embedded message that has their fields."""
        parts: dict[Path, list[Declared]] = {(): []}
        self.messages[place] = parts[()]
        for field in info.fields:
            path, number, inner = _find(name, field.encode_name)
            if inner is None:
                continue  # of JSON, or of other kinds that have the same view
            for depth in range(1, len(path) + 1):
                self._embed(place, path[:depth], parts)
            at = "".join(("m", *(f"_{part}" for part in path)))
            found.setdefault(path, []).append(f"{field.name}={self._value(parts[path], at, number, inner, field)}")
        self._write(place, found, [path for path in parts if path])
        return place

    def _embed(self, place: str, path: Path, parts: dict[Path, list[Declared]]) -> None:
        """Declare an embedded message."""
        if path not in parts:
            name = "e".join((place, *map(str, path)))
            self.messages[name] = parts[path] = []
            parts[path[:-1]].append(Declared(f"f{path[-1]}", path[-1], MESSAGE, message=name))

    def _write(self, place: str, found: dict[Path, list[str]], embedded: list[Path]) -> None:
        lines = [f"def read_{place}(m):"]
        for path in embedded:
            outer = "".join(("m", *(f"_{part}" for part in path[:-1])))
            lines.append(f"    {outer}_{path[-1]} = {outer}.f{path[-1]}")
        if embedded:  # most objects have none of what the view has in there
            empty = " or ".join(f"m_{path[0]}.ListFields()" for path in embedded if len(path) == 1)
            lines.append(f"    if not ({empty}): return view_{place}({', '.join(found[()])})")
        lines.append(f"    return view_{place}({', '.join(one for values in found.values() for one in values)})")
        self.source.append("\n".join(lines))

    def _value(self, declared: list[Declared], of: str, number: int, field: Field, view: inspect.Field) -> str:
        """Declare a field; the expression for its value."""
        at = f"{of}.f{number}"
        type_, optional = _without_none(view.type)

        def declare(kind: int, of_message: str = "") -> None:
            declared.append(Declared(f"f{number}", number, kind, field.repeated or field.keyed, of_message))

        def held(value: str) -> str:
            return f'{value} if {of}.HasField("f{number}") else None' if optional else value

        if field.keyed:
            declare(BYTES)
            return self._map(at, field, type_, optional=optional)
        if field.repeated:
            return self._list(at, declare, field, type_, optional=optional)
        if field.type in _LEAVES and isinstance(type_, _LEAVES[field.type]):
            return self._leaf(at, declare, held, field, view, optional=optional)
        if isinstance(type_, inspect.StructType) and special(field.type) is None:
            place = self.message(type_, field.type)
            if _is_shared(type_):
                declare(BYTES)
                self.names[f"shared_{place}"] = _shared_one(type_.cls, field.type, lenient=self._lenient)
                return held(f"shared_{place}({at})")
            declare(MESSAGE, place)
            return held(f"read_{place}({at})")
        declare(BYTES)
        if field.type in _TIMES and isinstance(type_, inspect.StrType) and optional:
            return f"{'time' if field.type == _TIMES[0] else 'micro_time'}(x) if (x := {at}) else None"
        if field.type == _QUANTITY and isinstance(type_, inspect.StrType):
            return held(f"quantity({at})")
        if field.type == _INT_OR_STRING and isinstance(type_, inspect.UnionType):
            return held(f"int_or_string({at})")
        if _is_document(type_) and message(field.type) is not None and optional:
            return held(f"document({field.type!r}, {at})")
        raise _Unsupported(f"{field.type} of {at}")

    def _leaf(
        self,
        at: str,
        declare: Callable[[int], None],
        held: Callable[[str], str],
        field: Field,
        view: inspect.Field,
        *,
        optional: bool,
    ) -> str:
        text = self._lenient and field.type == "string"
        declare(BYTES if text else _SCALARS[field.type])
        value = f"text({at})" if text else at
        if optional:
            return held(value)
        return f"{value} or {view.default!r}" if view.default else value

    def _map(self, at: str, field: Field, type_: inspect.Type, *, optional: bool) -> str:
        if not (isinstance(type_, inspect.DictType) and isinstance(type_.value_type, inspect.StrType)):
            raise _Unsupported(f"a map of {field.type}")
        if field.type not in ("string", _QUANTITY):
            raise _Unsupported(f"a map of {field.type}")
        name = "pairs" if field.type == "string" else "quantities"
        self.names[name] = _pairs(quantities=field.type == _QUANTITY, lenient=self._lenient)
        return f"{name}(tuple(x[:])) if (x := {at}) else {'None' if optional else '{}'}"

    def _list(self, at: str, declare: Callable[..., None], field: Field, type_: inspect.Type, *, optional: bool) -> str:
        if not isinstance(type_, inspect.VarTupleType) or optional:
            raise _Unsupported(f"a list of {field.type} that may be None")
        item = type_.item_type
        if field.type in _LEAVES and isinstance(item, _LEAVES[field.type]):
            text = self._lenient and field.type == "string"
            declare(BYTES if text else _SCALARS[field.type])
            return f"tuple(map(text, x[:])) if (x := {at}) else ()" if text else f"tuple(x[:]) if (x := {at}) else ()"
        if not isinstance(item, inspect.StructType) or special(field.type) is not None:
            raise _Unsupported(f"a list of {field.type}")
        place = self.message(item, field.type)
        if _is_shared(item):
            declare(BYTES)
            self.names[f"list_{place}"] = _shared_list(item.cls, field.type, lenient=self._lenient)
            return f"list_{place}(tuple(x[:])) if (x := {at}) else ()"
        declare(MESSAGE, place)
        return f"tuple([read_{place}(y) for y in x[:]]) if (x := {at}) else ()"


def _find(name: str, json_name: str) -> tuple[Path, int, Field | None]:
    """A field by its name in JSON: the embedded messages that have it, its number, and the field; None if there is
    none."""
    for number, field in _fields(name):
        if field.name == json_name:
            return (), number, field
    for part, embedded in _fields(name):
        if not embedded.name:
            path, number, inner = _find(embedded.type, json_name)
            if inner is not None:
                return (part, *path), number, inner
    return (), 0, None


def _fields(name: str) -> Iterator[tuple[int, Field]]:
    known = message(name)
    if known is None:
        raise _Unsupported(name)
    yield from known.items()


def _without_none(type_: inspect.Type) -> tuple[inspect.Type, bool]:
    """A type, and whether it was optional."""
    if not isinstance(type_, inspect.UnionType):
        return type_, False
    types = tuple(one for one in type_.types if not isinstance(one, inspect.NoneType))
    optional = len(types) < len(type_.types)
    return (types[0] if len(types) == 1 else inspect.UnionType(types)), optional


def _is_document(type_: inspect.Type) -> bool:
    return isinstance(type_, inspect.DictType) and not isinstance(
        type_.value_type, (inspect.StrType, inspect.StructType)
    )


# -- values that many objects share


def _shared(make: Callable[[K], T], size: Callable[[K], int], most: int = KEPT) -> Callable[[K], T]:
    """The function, whose last values are kept for parameters of up to LONGEST bytes."""
    known: dict[K, T] = {}

    def shared(data: K) -> T:
        found = known.get(data)
        if found is None:
            found = make(data)
            if size(data) <= LONGEST:
                if len(known) >= most:
                    known.clear()
                known[data] = found
        return found

    return shared


def _size(parts: tuple[bytes, ...]) -> int:
    return len(parts) + sum(map(len, parts))


def _is_shared(type_: inspect.StructType) -> bool:
    return issubclass(type_.cls, View) and type_.cls.SHARED


@cache
def _shared_one(view: Any, name: str, *, lenient: bool) -> Callable[[bytes], Any]:
    made = _made(view, name, lenient=lenient)
    return _shared(lambda data: made.view(made.parse(data)), len)


@cache
def _shared_list(view: Any, name: str, *, lenient: bool) -> Callable[[tuple[bytes, ...]], tuple[Any, ...]]:
    made = _made(view, name, lenient=lenient)
    return _shared(lambda parts: tuple([made.view(made.parse(part)) for part in parts]), _size)


@cache
def _pairs(*, quantities: bool, lenient: bool) -> Callable[[tuple[bytes, ...]], dict[str, str]]:
    """Reads the entries of a map."""
    text = BYTES if lenient else STRING
    value = Declared("value", 2, MESSAGE, message="Quantity") if quantities else Declared("value", 2, text)
    pair = ("Pair", (Declared("key", 1, text), value))
    parse = upb.parsers((pair, ("Quantity", (Declared("string", 1, text),))))["Pair"]
    found: Callable[[Any], Any] = (lambda pair: pair.value.string) if quantities else (lambda pair: pair.value)
    if lenient:
        return _shared(lambda parts: {_text(one.key): _text(found(one)) for one in map(parse, parts)}, _size)
    return _shared(lambda parts: {one.key: found(one) for one in map(parse, parts)}, _size)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _of_bytes(name: str, most: int = KEPT) -> Callable[[bytes], Any]:
    reader = special(name)
    assert reader is not None
    return _shared(reader, len, most)


_time, _micro_time = (_of_bytes(name, 4 * KEPT) for name in _TIMES)
_quantity, _int_or_string = (_of_bytes(name) for name in (_QUANTITY, _INT_OR_STRING))
