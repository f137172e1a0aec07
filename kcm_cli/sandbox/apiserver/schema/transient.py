"""Empty lists in requests that are lost when the object is stored.

In JSON, an empty list of a Go type is ``[]`` and a nil one ``null``. Decoding preserves the difference, so a client
that writes ``[]`` owns the field, and webhooks see it. Built-in kinds are stored as protobuf, which has one form for
both: ``null`` is stored and returned (or nothing, if the field has ``omitempty``). CustomResourceDefinitions are
stored as JSON and keep ``[]``.

upstream: the types' JSON tags, apimachinery pkg/runtime/serializer/protobuf
"""

from collections.abc import Callable
from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.schema.model import Node

Forget = Callable[[object], None]
_Part = tuple[str, Forget | None, bool]
"""A field, the function for its value, and whether an empty value becomes null."""


class Transient:
    """Compiles one function per type, and keeps it. A type without transient fields has none."""

    def __init__(self) -> None:
        self._made: dict[Node, Forget | None] = {}

    def forget(self, node: Node, doc: Doc) -> None:
        """Set such lists and maps of a normalised document to null, in place."""
        if node not in self._made:
            found: dict[Node, Forget | None] = {}
            _of(node, found)
            self._made[node] = found[node]
        forget = self._made[node]
        if forget is not None:
            forget(doc)


def _of(node: Node, found: dict[Node, Forget | None]) -> Forget | None:
    if node not in found:
        found[node] = None  # types that contain themselves have no such lists
        found[node] = _make(node, found)
    return found[node]


def _make(node: Node, found: dict[Node, Forget | None]) -> Forget | None:
    if node.kind in ("list", "map") and node.item is not None:
        return _each(_of(node.item, found))
    parts = [(field.name, _of(field.node, found), field.transient) for field in node.fields.values()]
    return _struct([part for part in parts if part[1] is not None or part[2]]) if node.kind == "struct" else None


def _each(item: Forget | None) -> Forget | None:
    if item is None:
        return None

    def forget(value: object) -> None:
        for part in cast("Doc", value).values() if isinstance(value, dict) else cast("list[object]", value):
            item(part)

    return forget


def _struct(parts: list[_Part]) -> Forget | None:
    if not parts:
        return None

    def forget(value: object) -> None:
        doc = cast("Doc", value)
        for name, below, transient in parts:
            part = doc.get(name)
            if part:
                if below is not None:
                    below(part)
            elif transient and part is not None:
                doc[name] = None

    return forget
