"""How a value is owned: as a whole, by its entries, or by its items.

A type that accepts any JSON takes the form of the value, like upstream's deduced types.

upstream: sigs.k8s.io/structured-merge-diff typed/helpers.go#deduceAtom, kube-openapi pkg/schemaconv
"""

from enum import Enum

from kcm_cli.sandbox.apiserver.schema.model import Node


class Form(Enum):
    """``WHOLE``: the value as a whole (atomic). ``MAP``: each entry or field. ``ITEMS``: each item of a set or a keyed
    list."""

    WHOLE = "whole"
    MAP = "map"
    ITEMS = "items"

    def fits(self, value: object) -> bool:
        """Whether a value that is not owned as a whole has this form, or is null."""
        return value is None or isinstance(value, dict if self is Form.MAP else list)


OPEN_FORMS = frozenset(["any", "object", "or"])
ANY = Node("any")
WHOLE = Node("raw")


def form(node: Node, value: object) -> Form:
    """How a value of this type is owned."""
    kind = node.kind
    if kind in ("struct", "map"):
        return Form.WHOLE if node.atomic else Form.MAP
    if kind == "list":
        return Form.WHOLE if node.list_type == "atomic" else Form.ITEMS
    if kind in OPEN_FORMS:
        return Form.MAP if isinstance(value, dict) or value is None else Form.WHOLE
    return Form.WHOLE


def entry(node: Node, key: str) -> Node:
    """The type of an entry of a map or a field of a struct."""
    if node.kind == "struct" or node.fields:
        field = node.fields.get(key)
        return field.node if field is not None else ANY
    return ANY if node.kind in OPEN_FORMS else node.item or ANY


def declared(node: Node, key: str) -> bool:
    """Whether it is a field of a struct, not an entry of a map."""
    return key in node.fields


def item(node: Node) -> Node:
    """The type of the items of a list."""
    return node.item or WHOLE
