"""The errors of a document that ``decode`` refuses: wrong types, unknown and repeated fields, with their paths.

Texts, order and precedence are those of a kube-apiserver's JSON decoder. After a value of a wrong type decoding
continues, and the first such error is returned. An error of a type that unmarshals itself (quantity, time) ends
decoding. Unknown and repeated fields count only if there is no other error.
"""

import json
import math
from typing import cast

import msgspec

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.schema import scalars
from kcm_cli.sandbox.apiserver.schema.gojson import Float, Pairs
from kcm_cli.sandbox.apiserver.schema.model import Node

MAX_ERRORS = 100
_STRING = Node("string", go="string")


class Malformed(Exception):
    """A value that ends decoding. The text is the server's."""


class Findings(msgspec.Struct):
    """``fatal``: the document cannot be decoded. ``strict``: unknown and repeated fields, in order."""

    fatal: str = ""
    strict: list[str] = msgspec.field(default_factory=list)


def examine(node: Node, value: object) -> Findings:
    """Compare a parsed value (objects as Pairs or dicts) with its type."""
    reader = _Reader()
    try:
        reader.read(node, value, "", ())
    except Malformed as error:
        reader.findings.fatal = str(error)
    return reader.findings


class _Reader:
    def __init__(self) -> None:
        self.findings = Findings()
        self._struct = ""
        self._within = ""

    def read(self, node: Node, value: object, path: str, stack: tuple[str, ...], go: str = "") -> None:
        """``path``: for strict errors; ``stack``: the fields for type errors; ``go``: the type, if it is not the
        node's."""
        if value is None:
            return
        go = go or node.go
        if node.kind == "struct":
            self._read_struct(node, value, path, stack)
        elif node.kind == "map":
            self._read_map(node, value, path, stack, go)
        elif node.kind == "list":
            self._read_list(node, value, path, stack, go)
        elif node.kind == "or" and node.item is not None:
            self._read_or(node, node.item, value, stack)
        elif node.kind in ("any", "raw", "object"):
            self._read_any(value, path, repeats=node.kind == "any")
        else:
            self._read_scalar(node, value, stack, go)

    def _read_struct(self, node: Node, value: object, path: str, stack: tuple[str, ...]) -> None:
        items = _items(value)
        if items is None:
            self._mismatch(value, node.go, stack)
            return
        outer = self._struct
        seen: set[str] = set()
        for key, item in items:
            found = node.fields.get(key)
            if found is None:
                if not node.open:
                    self._strict("unknown field", path, key)
                continue
            if key in seen:
                self._strict("duplicate field", path, key)
            seen.add(key)
            self._struct = node.struct
            way = (*stack, *found.embedded, key)
            self.read(found.node, item, f"{path}.{key}" if path else key, way, found.go)
            self._struct = outer

    def _read_or(self, node: Node, item: Node, value: object, stack: tuple[str, ...]) -> None:
        """A type that unmarshals itself: its first error ends decoding and names the enclosing struct; unknown fields
        are not reported."""
        inner = _Reader()
        inner._within = self._within or self._struct
        if _items(value) is not None:
            inner.read(item, value, "", stack)
        elif node.other == "boolean":
            if not isinstance(value, bool):
                raise Malformed("boolean or JSON schema expected")
        elif isinstance(value, list):
            inner.read(Node("list", item=item if node.other == "list" else _STRING), value, "", stack)
        if inner.findings.fatal:
            raise Malformed(inner.findings.fatal)

    def _read_map(self, node: Node, value: object, path: str, stack: tuple[str, ...], go: str) -> None:
        items = _items(value)
        if items is None:
            self._mismatch(value, go, stack)
            return
        assert node.item is not None
        seen: set[str] = set()
        for key, item in items:
            if key in seen:
                self._strict("duplicate field", path, key)
            seen.add(key)
            self.read(node.item, item, f"{path}.{key}" if path else key, stack)

    def _read_list(self, node: Node, value: object, path: str, stack: tuple[str, ...], go: str) -> None:
        if not isinstance(value, list) or isinstance(value, Pairs):
            self._mismatch(value, go, stack)
            return
        assert node.item is not None
        for index, item in enumerate(value):
            self.read(node.item, item, f"{path}[{index}]", stack, go.removeprefix("[]"))

    def _read_any(self, value: object, path: str, *, repeats: bool) -> None:
        items = _items(value)
        if items is not None:
            seen: set[str] = set()
            for key, item in items:
                if key in seen and repeats:
                    self._strict("duplicate field", path, key)
                seen.add(key)
                self._read_any(item, f"{path}.{key}" if path else key, repeats=repeats)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._read_any(item, f"{path}[{index}]", repeats=repeats)
        elif _overflows(value):
            self._note(f"json: cannot unmarshal number {_literal(value)} into Go value of type float64")

    def _read_scalar(self, node: Node, value: object, stack: tuple[str, ...], go: str) -> None:
        if node.kind == "string":
            if not isinstance(value, str):
                self._mismatch(value, go, stack)
        elif node.kind == "boolean":
            if not isinstance(value, bool):
                self._mismatch(value, node.go, stack)
        elif node.kind in ("int32", "int64", "number"):
            self._read_number(node, value, stack)
        elif node.kind == "bytes":
            self._read_bytes(value, stack)
        else:
            self._read_special(node, value, stack)

    def _read_number(self, node: Node, value: object, stack: tuple[str, ...]) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._mismatch(value, node.go, stack)
            return
        bits = 31 if node.kind == "int32" else 63
        fits = isinstance(value, int) and -(1 << bits) <= value < 1 << bits
        if not fits and (node.kind != "number" or _overflows(value)):
            self._mismatch(value, node.go, stack, literal=True)

    def _read_bytes(self, value: object, stack: tuple[str, ...]) -> None:
        if isinstance(value, Pairs):  # an object, although a list in Python
            self._mismatch(value, "[]uint8", stack)
            return
        try:
            scalars.base64_bytes(value)
        except TypeError:
            if not isinstance(value, list):
                self._mismatch(value, "[]uint8", stack)
                return
            item = next(one for one in value if not scalars.is_byte(one))
            self._mismatch(item, "uint8", stack, literal=isinstance(item, int | float) and not isinstance(item, bool))
        except FormatError as error:
            self._note(str(error))

    def _read_special(self, node: Node, value: object, stack: tuple[str, ...]) -> None:
        """A type that unmarshals itself: its error ends decoding."""
        try:
            if node.kind == "quantity":
                scalars.quantity(_quantity_text(value))
            elif node.kind == "intorstr":
                scalars.int_or_string(value)
            elif node.kind == "time":
                scalars.time(value)
            else:
                scalars.micro_time(value)
        except FormatError as error:
            raise Malformed(str(error)) from None
        except TypeError:
            go = "int32" if node.kind == "intorstr" else "string"
            literal = isinstance(value, int | float) and not isinstance(value, bool) and go == "int32"
            raise Malformed(self._text(value, go, stack, literal=literal)) from None

    def _strict(self, what: str, path: str, key: str) -> None:
        text = f"{what} {quote(f'{path}.{key}' if path else key)}"
        if len(self.findings.strict) < MAX_ERRORS and text not in self.findings.strict:
            self.findings.strict.append(text)

    def _mismatch(self, value: object, go: str, stack: tuple[str, ...], *, literal: bool = False) -> None:
        self._note(self._text(value, go, stack, literal=literal))

    def _note(self, text: str) -> None:
        if not self.findings.fatal:
            self.findings.fatal = text

    def _text(self, value: object, go: str, stack: tuple[str, ...], *, literal: bool = False) -> str:
        said = f"number {_literal(value)}" if literal else json_kind(value)
        if not stack:
            return f"json: cannot unmarshal {said} into Go value of type {go}"
        struct = self._within or self._struct
        return f"json: cannot unmarshal {said} into Go struct field {struct}.{'.'.join(stack)} of type {go}"


def drop_unknown(node: Node, value: object) -> None:
    """Remove, in place, the fields that the type does not have."""
    if value.__class__ is dict:
        doc = cast("dict[str, object]", value)
        if node.kind == "struct":
            for key in [k for k in doc if k not in node.fields and not node.open]:
                del doc[key]
            for key, item in doc.items():
                if key in node.fields:
                    drop_unknown(node.fields[key].node, item)
        elif node.kind == "map" and node.item is not None:
            for item in doc.values():
                drop_unknown(node.item, item)
        elif node.kind == "or" and node.item is not None:
            drop_unknown(node.item, value)
    elif value.__class__ is list and node.kind in ("list", "or") and node.item is not None:
        for item in cast("list[object]", value):
            drop_unknown(node.item, item)


def unreadable(value: object, go: str) -> str:
    """The error for a value of a wrong type that is not in a field."""
    literal = isinstance(value, int | float) and not isinstance(value, bool)
    said = f"number {_literal(value)}" if literal and go != "string" else json_kind(value)
    return f"json: cannot unmarshal {said} into Go value of type {go}"


def _items(value: object) -> list[tuple[str, object]] | None:
    if isinstance(value, Pairs):
        return value
    return list(value.items()) if isinstance(value, dict) else None


def json_kind(value: object) -> str:
    """The kind of a JSON value in errors of Go's decoder."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, Pairs | dict) else "array"


def _overflows(value: object) -> bool:
    """Whether a number is too large for a float."""
    try:
        return isinstance(value, int | float) and math.isinf(value)
    except OverflowError:
        return True


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Float) else json.dumps(value)


def _quantity_text(value: object) -> str:
    """The text that a quantity parses: its JSON, without the quotes of a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return _literal(value)
    return "{}"
