"""The errors of converting a merged document, not JSON text, to a typed object.

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
_FITTING: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "int32": (int,),
    "int64": (int,),
}
_CONVERTIBLE: dict[str, tuple[type, ...]] = {"string": (int,), "int32": (float,), "int64": (float,)}
"""Types that Go's reflection calls convertible, so that the error is a different one."""
_GO_KINDS = {"boolean": "bool", "number": "float64"}
_BITS = {"int32": 32, "int64": 64}


def first_problem(node: Node, value: object, go: str = "") -> str:
    """The error of the conversion; empty if it succeeds. ``go``: the field's type if its name is not the node's."""
    if value is None or node.kind in ("any", "raw", "object"):
        return ""
    if node.kind == "or":
        return strict.examine(node, value).fatal
    if node.kind == "struct":
        return _struct(node, value)
    if node.kind == "map":
        return _map(node, value)
    if node.kind == "list":
        return _list(node, value, go)
    return _special(node, value) if node.kind in _READERS else _scalar(node, value, go)


def _struct(node: Node, value: object) -> str:
    if not isinstance(value, dict):
        return f"cannot restore struct from: {_KINDS[type(value)]}"
    return next(filter(None, (first_problem(f.node, value.get(name), f.go) for name, f in node.fields.items())), "")


def _map(node: Node, value: object) -> str:
    if not isinstance(value, dict):
        return f"cannot restore map from {_KINDS[type(value)]}"
    if node.item is None:
        return ""
    return next(filter(None, (first_problem(node.item, item) for item in value.values())), "")


def _list(node: Node, value: object, go: str) -> str:
    if not isinstance(value, list):
        return f"cannot restore slice from {_KINDS[type(value)]}"
    if node.item is None:
        return ""
    return next(filter(None, (first_problem(node.item, item, go.removeprefix("[]")) for item in value)), "")


def _special(node: Node, value: object) -> str:
    try:
        _READERS[node.kind](value)
    except FormatError as error:
        return str(error)
    except TypeError:
        return strict.unreadable(value, "int32" if node.kind == "intorstr" else "string")
    return ""


def _scalar(node: Node, value: object, go: str) -> str:
    kind = type(value)
    if node.kind == "bytes":
        return _bytes(value)
    if kind in _FITTING[node.kind] or (node.kind in _BITS and isinstance(value, float) and value.is_integer()):
        return ""
    if kind in _CONVERTIBLE.get(node.kind, ()):
        return f"cannot convert {_KINDS[kind]} to {go or node.go}"
    return f"unrecognized type: {_GO_KINDS.get(node.kind, node.kind)}"


def settle(node: Node, value: object) -> object:
    """Convert the numbers of integer fields in a value that has no problem: without fraction, and wrapped to the
    field's bits. Lists and maps are changed in place."""
    if node.kind == "struct" and isinstance(value, dict):
        for name in node.fields.keys() & value.keys():
            value[name] = settle(node.fields[name].node, value[name])
    elif node.item is not None and isinstance(value, dict) and node.kind == "map":
        for key, item in value.items():
            value[key] = settle(node.item, item)
    elif node.item is not None and isinstance(value, list):
        value[:] = [settle(node.item, item) for item in value]
    elif node.kind in _BITS and isinstance(value, int | float) and not isinstance(value, bool):
        half = 1 << (_BITS[node.kind] - 1)
        return (int(value) + half) % (2 * half) - half
    return value


def _bytes(value: object) -> str:
    try:
        scalars.base64_bytes(value)
    except TypeError:
        return f"cannot restore slice from {_KINDS[type(value)]}"
    except FormatError as error:
        return f"error decoding from json: {error}"
    return ""
