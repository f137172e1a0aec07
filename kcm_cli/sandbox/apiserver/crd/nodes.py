"""Converts structural schemas to types for server-side apply and managedFields.

upstream: apiextensions-apiserver pkg/controller/openapi/builder, kube-openapi pkg/schemaconv/openapi.go
"""

from kcm_cli.sandbox.apiserver.crd.structural import NO_DEFAULT, Structural
from kcm_cli.sandbox.apiserver.schema.model import NOTHING, Field, Node

_TEXT = Node("string", go="string")
_TRUTH = Node("boolean", go="bool")
_NUMBER = Node("number", go="float64")
_SCALAR = Node("intorstr")
_ANY = Node("any")
_PLAIN_FORMATS = ("", "byte")


def root_node(schema: Structural, meta: Node) -> Node:
    """The type of a kind. ``meta``: the type of its metadata."""
    node = _object(schema, meta, keep=schema.preserve)
    if node.kind != "struct":
        node = Node("struct", open=True)
    _add_meta(node, meta)
    return node


def _add_meta(node: Node, meta: Node) -> None:
    for name, type_ in (("apiVersion", _TEXT), ("kind", _TEXT), ("metadata", meta)):
        node.fields[name] = Field(name, type_, absent=NOTHING)


def _node(schema: Structural, meta: Node, *, keep: bool) -> Node:
    """``keep``: unknown fields are preserved here and below."""
    keep = keep or schema.preserve
    match schema.type:
        case "object":
            return _object(schema, meta, keep=keep)
        case "array":
            return _list(schema, meta, keep=keep)
        case "string":
            return _TEXT if schema.raw.get("format", "") in _PLAIN_FORMATS else _SCALAR
        case "integer" | "number":
            return _NUMBER
        case "boolean":
            return _TRUTH
    return _any(schema, meta, keep=keep) if schema.properties else _ANY


def _any(schema: Structural, meta: Node, *, keep: bool) -> Node:
    """Any value; the declared fields of objects have types."""
    return Node("any", fields=_object(schema, meta, keep=keep).fields)


def _object(schema: Structural, meta: Node, *, keep: bool) -> Node:
    atomic = schema.map_type == "atomic"
    if schema.values is not None and not schema.properties:
        return Node("map", item=_node(schema.values, meta, keep=keep), atomic=atomic)
    free = keep or not schema.properties or schema.additional is True
    node = Node("struct", atomic=atomic, open=free)
    for name, sub in schema.properties.items():
        default = None if sub.default is NO_DEFAULT else sub.default
        node.fields[name] = Field(name, _node(sub, meta, keep=keep), absent=NOTHING, default=default)
    if schema.embedded:
        _add_meta(node, meta)
    return node


def _list(schema: Structural, meta: Node, *, keep: bool) -> Node:
    item = _ANY if schema.items is None else _node(schema.items, meta, keep=keep)
    known = {} if schema.items is None else schema.items.properties
    defaults = {
        key: known[key].default for key in schema.list_keys if key in known and known[key].default is not NO_DEFAULT
    }
    return Node("list", item=item, list_type=schema.list_type or "atomic", keys=schema.list_keys, key_defaults=defaults)
