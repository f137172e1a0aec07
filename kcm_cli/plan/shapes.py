"""Checks that the objects of a file have the types of their kinds, since an API server reads what it has stored as it
is, and that the metadata of manifests have theirs."""

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.schema import Schemas, Target
from kcm_cli.sandbox.apiserver.schema.model import Node

_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("string", "bytes", "time", "microtime"), str),
    **dict.fromkeys(("int32", "int64"), int),
    "boolean": bool,
    "number": (int, float),
    "quantity": (str, int, float),
    "intorstr": (str, int),
}
_BITS = {"int32": 31, "int64": 63}


class Shapes:
    """Knows the types of the built-in kinds."""

    def __init__(self) -> None:
        self._schemas = Schemas()

    def fault(self, gvr: GVR, kind: str, doc: Doc) -> str:
        """The path of the first field of another type, with what is wrong; empty if there is none, and for kinds and
        fields that are not known."""
        node = self._schemas.node(Target(gvr.group, gvr.version, kind))
        return _fault(node, doc, "") if node is not None else ""


def fault_of_metadata(metadata: Doc) -> str:
    """The same of the metadata of any object."""
    return Shapes().fault(GVR("", "v1", "configmaps"), "ConfigMap", {"metadata": metadata})


def _fault(node: Node, value: object, path: str) -> str:
    kind = node.kind
    if kind == "struct":
        return _of_fields(node, value, path) if isinstance(value, dict) else _wrong(path, "an object", value)
    if kind == "list":
        return _of_items(node, value, path) if isinstance(value, list) else _wrong(path, "a list", value)
    if kind == "map":
        return _of_values(node, value, path) if isinstance(value, dict) else _wrong(path, "an object", value)
    types = _TYPES.get(kind)
    if types is None:
        return ""
    if not isinstance(value, types) or (kind != "boolean" and isinstance(value, bool)):
        return _wrong(path, kind, value)
    if kind in _BITS and isinstance(value, int) and not -1 << _BITS[kind] <= value < 1 << _BITS[kind]:
        return f"{path.removeprefix('.')}: a number that does not fit into {kind}"
    return ""


def _of_fields(node: Node, value: Doc, path: str) -> str:
    fields = node.fields
    for name, inner in value.items():
        field = fields.get(name)
        if field is not None and inner is not None and (found := _fault(field.node, inner, f"{path}.{name}")):
            return found
    return ""


def _of_items(node: Node, value: list[object], path: str) -> str:
    item = node.item
    if item is not None:
        for number, inner in enumerate(value):
            if found := _fault(item, inner, f"{path}[{number}]"):
                return found
    return ""


def _of_values(node: Node, value: Doc, path: str) -> str:
    item = node.item
    if item is not None:
        for name, inner in value.items():
            if found := _fault(item, inner, f"{path}[{name}]"):
                return found
    return ""


def _wrong(path: str, wanted: str, value: object) -> str:
    found = (
        "null" if value is None else {dict: "an object", list: "a list", str: "text", bool: "boolean"}.get(type(value))
    )
    return f"{path.removeprefix('.') or 'it'}: {found or 'a number'} instead of {wanted}"
