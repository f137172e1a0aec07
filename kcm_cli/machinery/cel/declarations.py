"""Declares the types of schemas: the fields of objects that expressions may use.

Object types are named by their paths (``Pod0.spec.containers.@idx``), and computed on first use. A field whose type CEL
does not have (quantities, any value) does not exist in expressions.

upstream: staging/src/k8s.io/apiserver/pkg/cel/common/schemas.go, cel/openapi/resolver/refs.go, cel/escaping.go
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from kcm_cli.machinery.cel.lexer import RESERVED
from kcm_cli.machinery.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
)

Schema = dict[str, Any]
_FORMATS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_PLAIN = {"boolean": BOOL, "number": DOUBLE, "integer": INT}
_TEXT: Schema = {"type": "string"}
_META: Schema = {"type": "object", "properties": {"name": _TEXT, "generateName": _TEXT}}
_CIRCULAR: Schema = {"type": "object"}
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_NAME = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")
_SPECIAL = re.compile(r"__|[-./]")


def escaped(name: str) -> str:
    """A field's name as expressions write it; empty if they cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return ""
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], name)


def no_references(reference: str) -> Schema | None:
    """A ``resolve`` function for schemas without references."""
    return None


class Declarations:
    """Declares schemas. resolve: returns the schema that a reference names. formats: whether the format int-or-string
    counts like the extension."""

    def __init__(self, resolve: Callable[[str], Schema | None] = no_references, *, formats: bool = False) -> None:
        self._resolve = resolve
        self._formats = formats
        self._pending: dict[str, tuple[Schema, frozenset[str]]] = {}
        self._fields: dict[str, Mapping[str, Type]] = {}

    def declare(self, schema: Schema, name: str, *, root: bool, inside: frozenset[str] = frozenset()) -> Type | None:
        """The type of a schema; None if expressions cannot use it. root: the schema of a resource. inside: the
        enclosing references."""
        schema, inside = self._followed(schema, inside)
        if self._is_int_or_string(schema):
            return DYN
        if root:
            schema = _with_meta(schema)
        match _type(schema):
            case "array":
                items = self._below(schema.get("items"), f"{name}.@idx", inside)
                return list_of(items) if items is not None else None
            case "object":
                return self._object(schema, name, inside)
            case "string":
                return _FORMATS.get(schema.get("format") or "", STRING)
            case other:
                return _PLAIN.get(other)

    def fields(self, name: str) -> Mapping[str, Type] | None:
        """The fields of an object type by its name."""
        if name in self._pending:
            schema, inside = self._pending.pop(name)
            self._fields[name] = self._worked_out(schema, name, inside)
        return self._fields.get(name)

    def _object(self, schema: Schema, name: str, inside: frozenset[str]) -> Type | None:
        if isinstance(values := schema.get("additionalProperties"), dict):
            kind = self._below(values, f"{name}.@elem", inside)
            return map_of(STRING, kind) if kind is not None else None
        self._pending[name] = (schema, inside)
        return Type(name)

    def _worked_out(self, schema: Schema, name: str, inside: frozenset[str]) -> dict[str, Type]:
        found: dict[str, Type] = {}
        for field, sub in (schema.get("properties") or {}).items():
            shown = escaped(field)
            kind = self._below(sub, f"{name}.{shown}", inside) if shown else None
            if kind is not None:
                found[shown] = kind
                if field in RESERVED:
                    found.setdefault(field, kind)
        return found

    def _below(self, schema: Schema | None, name: str, inside: frozenset[str]) -> Type | None:
        if not isinstance(schema, dict):
            return None
        embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        return self.declare(schema, name, root=embedded, inside=inside)

    def _followed(self, schema: Schema, inside: frozenset[str]) -> tuple[Schema, frozenset[str]]:
        """Resolve a reference. A recursive one becomes an object without known fields."""
        while (reference := _reference(schema)) is not None:
            if reference in inside:
                return _CIRCULAR, inside
            schema, inside = self._resolve(reference) or {}, inside | {reference}
        return schema, inside

    def _is_int_or_string(self, schema: Schema) -> bool:
        by_format = self._formats and schema.get("format") == "int-or-string"
        return by_format or bool(schema.get("x-kubernetes-int-or-string"))


def _type(schema: Schema) -> str:
    found = schema.get("type", "")
    return str(found[0] if isinstance(found, list) and found else found)


def _reference(schema: Schema) -> str | None:
    """The schema's reference, or one in allOf (as it is written beside a description)."""
    if "$ref" in schema:
        return str(schema["$ref"])
    return next((found for part in schema.get("allOf") or () if (found := _reference(part)) is not None), None)


def _with_meta(schema: Schema) -> Schema:
    """The schema with apiVersion, kind and metadata, if it lacks them."""
    fields = schema.get("properties") or {}
    if all(name in fields for name in ("kind", "apiVersion", "metadata")):
        meta = fields["metadata"]
        if _reference(meta) is not None or {"name", "generateName"} <= (meta.get("properties") or {}).keys():
            return schema
    return {**schema, "properties": {**fields, "kind": _TEXT, "apiVersion": _TEXT, "metadata": _META}}
