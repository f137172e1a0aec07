"""The texts of errors when a merged document, not JSON text, is turned into an object of a kind.

upstream: apimachinery pkg/runtime/converter.go#fromUnstructured
"""

from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.schema import scalars, strict
from kcm_cli.sandbox.apiserver.schema.model import Node

_KINDS: dict[type, str] = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"}
_READERS = {
    "quantity": scalars.quantity,
    "intorstr": scalars.int_or_string,
    "time": scalars.time,
    "microtime": scalars.micro_time,
}


def first_problem(node: Node, value: object) -> str:
    """What the conversion fails on; empty if nothing."""
    if value is None or node.kind in ("any", "raw", "or"):
        return ""
    if node.kind == "struct":
        return _struct(node, value)
    if node.kind in ("map", "object"):
        return _map(node, value)
    if node.kind == "list":
        return _list(node, value)
    return _special(node, value) if node.kind in _READERS else _scalar(node, value)


def _struct(node: Node, value: object) -> str:
    if not isinstance(value, dict):
        return f"cannot restore struct from: {_KINDS[type(value)]}"
    return next(filter(None, (first_problem(f.node, value.get(name)) for name, f in node.fields.items())), "")


def _map(node: Node, value: object) -> str:
    if not isinstance(value, dict):
        return f"cannot restore map from {_KINDS[type(value)]}"
    if node.item is None:
        return ""
    return next(filter(None, (first_problem(node.item, item) for item in value.values())), "")


def _list(node: Node, value: object) -> str:
    if not isinstance(value, list):
        return f"cannot restore slice from {_KINDS[type(value)]}"
    if node.item is None:
        return ""
    return next(filter(None, (first_problem(node.item, item) for item in value)), "")


def _special(node: Node, value: object) -> str:
    try:
        _READERS[node.kind](value)
    except FormatError as error:
        return str(error)
    except TypeError:
        return strict.unreadable(value, "int32" if node.kind == "intorstr" else "string")
    return ""


def _scalar(node: Node, value: object) -> str:
    kind = type(value)
    if node.kind == "bytes":
        return _bytes(value)
    fits = {
        "string": kind is str,
        "boolean": kind is bool,
        "number": kind in (int, float),
    }.get(node.kind, kind is int or (isinstance(value, float) and value.is_integer()))
    return "" if fits else f"cannot convert {strict_type(value)} to {node.go}"


def _bytes(value: object) -> str:
    try:
        scalars.base64_bytes(value)
    except TypeError:
        return f"cannot restore slice from {_KINDS[type(value)]}"
    except FormatError as error:
        return f"error decoding from json: {error}"
    return ""


def strict_type(value: object) -> str:
    """The Go type of a decoded JSON value."""
    names: dict[type, str] = {dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value)) or _KINDS[type(value)]
