"""The JSON of the patched object in errors about patches.

Objects that the patch changes have sorted keys. The others have their fields in the order of the API types, as far as
it is known.

upstream: apiserver pkg/endpoints/handlers/patch.go#applyPatchToCurrentObject
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import cast

from kcm_cli.machinery import codec, go_types
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.protobuf.messages import message, message_names
from kcm_cli.sandbox.apiserver.schema.model import Node

_ESCAPES = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
_field = re.compile(r"(\w+)(?:=([\w.]+))?:(\S+)")


def echo(node: Node, doc: Doc, patch: object) -> str:
    """``patch``: the merge patch, or for a JSON patch the result of ``touched``."""
    text = codec.encode(_arranged(node, doc, patch)).decode()
    for plain, escaped in _ESCAPES:
        text = text.replace(plain, escaped)
    return text


def touched(operations: list[Doc]) -> Doc:
    """The objects and lists on the paths of a JSON patch's operations, as a tree of dicts."""
    tree: Doc = {}
    for operation in operations:
        for name in ("path", "from"):
            pointer = operation.get(name)
            if isinstance(pointer, str):
                at = tree
                for part in pointer.split("/")[1:-1]:
                    key = part.replace("~1", "/").replace("~0", "~")
                    at = cast("Doc", at.setdefault(key, {}))
    return tree


def _arranged(node: Node | None, value: object, patch: object) -> object:
    if isinstance(value, dict):
        inner = patch if isinstance(patch, dict) else None
        keys = sorted(value) if inner is not None or node is None else _field_order(node, value)
        return {key: _arranged(_child(node, key), value[key], (inner or {}).get(key)) for key in keys}
    if isinstance(value, list):
        item = node.item if node is not None else None
        places = patch if isinstance(patch, dict) else {}
        return [_arranged(item, entry, places.get(str(index))) for index, entry in enumerate(value)]
    return value


def _child(node: Node | None, key: str) -> Node | None:
    if node is None:
        return None
    if node.kind == "struct":
        field = node.fields.get(key)
        return field.node if field else None
    return node.item


def _field_order(node: Node, value: Doc) -> list[str]:
    order: Mapping[str, int] = {}
    if node.kind == "struct":
        order = _orders().get(node.go) or _numbers().get(node.struct, {})
    return sorted(value, key=lambda key: (order.get(key, len(order)), key))


@cache
def _orders() -> dict[str, dict[str, int]]:
    """The positions of fields, by type and field."""
    lines = dict(line.split(" ", 1) for line in go_types.STRUCTS.strip().replace("\n  ", " ").split("\n"))
    found = {type_: _names(type_, lines) for type_ in lines}
    return {type_: {name: place for place, name in enumerate(names)} for type_, names in found.items()}


@cache
def _numbers() -> dict[str, dict[str, int]]:
    """The same by the field numbers of protobuf messages, for types whose order in Go is not known."""
    found: dict[str, dict[str, int]] = {}
    for name in message_names():
        fields = message(name) or {}
        found.setdefault(name.rpartition(".")[2], {one.name: number for number, one in fields.items()})
    return found


def _names(type_: str, lines: dict[str, str]) -> list[str]:
    names: list[str] = []
    for match in _field.finditer(lines.get(type_, "")):
        if match[2] == ".":
            names += _names(match[3].lstrip("*"), lines)
        else:
            names.append(match[2] or match[1][0].lower() + match[1][1:])
    return names
