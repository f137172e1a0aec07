"""Normalises documents: from the form that a client sends to the form that is stored, in one pass.

A normaliser checks the type of every value and converts the document to the form that a kube-apiserver writes:
without unknown fields, nulls that mean absence, and zeros that equal absence; with embedded structs; with quantities
and times in canonical form. It works in place and runs on every write (20-40 µs for a pod), so it only reports
*that* something is wrong (``Irregular``); ``strict`` finds out what.

Normalisers are compiled when first needed, field by field.
"""

from collections.abc import Callable, Collection
from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.schema import scalars
from kcm_cli.sandbox.apiserver.schema.load import ZEROS
from kcm_cli.sandbox.apiserver.schema.model import NOTHING, Field, Node

Convert = Callable[[object], object]
_Spec = tuple[type | None, Convert | None, bool]
"""The class of valid values (None: the converter checks), the converter, and whether an empty value is dropped."""


class Irregular(Exception):
    """The document has an unknown field or a value of a wrong type."""


_PLAIN: dict[str, type] = {"string": str, "boolean": bool}
_CONVERT: dict[str, Convert] = {
    "int32": scalars.int32,
    "int64": scalars.int64,
    "number": scalars.number,
    "any": scalars.any_json,
    "intorstr": scalars.int_or_string,
    "quantity": scalars.quantity,
    "time": scalars.time,
    "microtime": scalars.micro_time,
    "bytes": scalars.base64_bytes,
}


class Normalizers:
    """Compiles one normaliser per node, and keeps it."""

    def __init__(self) -> None:
        self._made: dict[Node, Convert] = {}

    def run(self, node: Node, doc: object) -> object:
        """Normalise in place; returns the document. Raises Irregular, possibly after changing the document.

        The empty ``managedFields`` of an object is kept, since it removes all managers; that of a template is dropped.
        """
        resets = doc.__class__ is dict and forgets_managers(doc.get("metadata"))
        try:
            made = self.of(node)(doc)
        except (TypeError, FormatError):
            raise Irregular from None
        if resets:
            cast("Doc", cast("Doc", made)["metadata"])["managedFields"] = []
        return made

    def run_on(self, node: Node, doc: Doc, touched: Collection[str] | None) -> Doc:
        """The same for some fields of a document (None: all). The others must be normalised."""
        if touched is None:
            return cast("Doc", self.run(node, doc))
        part = cast("Doc", self.run(node, {name: doc[name] for name in touched if name in doc}))
        for name in touched:
            if name not in part:
                doc.pop(name, None)
        for name, value in part.items():
            if name in touched or name not in doc:
                doc[name] = value
        return doc

    def of(self, node: Node) -> Convert:
        convert = self._made.get(node)
        if convert is None:
            convert = self._made[node] = self._make(node)
        return convert

    def _make(self, node: Node) -> Convert:
        if node.kind == "struct":
            return self._struct(node)
        if node.kind == "map":
            return self._map(node)
        if node.kind == "list":
            return self._list(node)
        if node.kind == "or":
            return self._or(node)
        if node.kind in _PLAIN:
            return _checked(_PLAIN[node.kind])
        return _CONVERT.get(node.kind, _identity)

    def _struct(self, node: Node) -> Convert:  # noqa: C901 - the hot loop is kept in one piece
        specs: dict[str, _Spec] = {}
        for field in node.fields.values():
            specs[field.name] = self._spec(specs, field)
        absent = [(name, self._filler(f)) for name, f in node.fields.items() if f.absent is not NOTHING]
        find = specs.get
        is_open = node.open

        def normalize(doc: object) -> object:  # noqa: C901
            if doc.__class__ is not dict:
                raise Irregular
            drop = None
            for key, value in doc.items():
                spec = find(key)
                if spec is None:
                    if is_open:
                        continue
                    raise Irregular
                cls, convert, droppable = spec
                if value is None:
                    drop = [key] if drop is None else [*drop, key]
                    continue
                if cls is not None and value.__class__ is not cls:
                    raise Irregular
                if convert is not None:
                    new = convert(value)
                    if new is not value:
                        doc[key] = value = new
                if droppable and not value:
                    drop = [key] if drop is None else [*drop, key]
            if drop is not None:
                for key in drop:
                    del doc[key]
            for name, fill in absent:
                if name not in doc:
                    doc[name] = fill()
            return doc

        return normalize

    def _spec(self, specs: dict[str, _Spec], field: Field) -> _Spec:
        node = field.node
        droppable = not field.keeps_zero
        if node.kind in _PLAIN:
            return _PLAIN[node.kind], None, droppable
        if node.kind in ("any", "raw", "object"):
            return None, _CONVERT.get(node.kind), False
        if node.kind in _CONVERT:
            return None, _CONVERT[node.kind], droppable
        cls = None if node.kind == "or" else list if node.kind == "list" else dict

        def make_then_run(value: object) -> object:
            convert = self.of(node)
            specs[field.name] = (cls, convert, droppable)
            return convert(value)

        return cls, make_then_run, droppable

    def _filler(self, field: Field) -> Callable[[], object]:
        if field.absent.__class__ is dict:
            return lambda: self.of(field.node)({})
        return lambda: field.absent

    def _map(self, node: Node) -> Convert:
        item = node.item
        assert item is not None
        if item.kind == "string":
            return _string_map
        convert = self.of(item)

        def normalize(doc: object) -> object:
            if doc.__class__ is not dict:
                raise Irregular
            for key, value in doc.items():
                new = self.zero(item) if value is None else convert(value)
                if new is not value:
                    doc[key] = new
            return doc

        return normalize

    def _list(self, node: Node) -> Convert:
        item = node.item
        assert item is not None
        if item.kind == "string":
            return _string_list
        made: list[Convert] = []

        def normalize(doc: object) -> object:
            if doc.__class__ is not list:
                raise Irregular
            if not made:
                made.append(self.of(item))
            convert = made[0]
            for index, value in enumerate(doc):
                new = self.zero(item) if value is None else convert(value)
                if new is not value:
                    doc[index] = new
            return doc

        return normalize

    def _or(self, node: Node) -> Convert:
        item, other = node.item, node.other
        assert item is not None
        listed = _string_list if other == "strings" else self.of(Node("list", item=item))

        def normalize(value: object) -> object:
            if isinstance(value, dict):
                return self.of(item)(value)
            if other == "boolean":
                if not isinstance(value, bool):
                    raise Irregular
                return value
            return listed(value) if isinstance(value, list) and value else None

        return normalize

    def zero(self, node: Node) -> object:
        """The value of a null in a list or a map."""
        return self.of(node)({}) if node.kind == "struct" else ZEROS.get(node.kind)


def forgets_managers(meta: object) -> bool:
    """Whether metadata has an empty ``managedFields``, which removes all managers."""
    return meta.__class__ is dict and meta.get("managedFields") == []


def _identity(value: object) -> object:
    return value


def _checked(cls: type) -> Convert:
    def check(value: object) -> object:
        if value.__class__ is not cls:
            raise Irregular
        return value

    return check


def _string_map(doc: object) -> object:
    if doc.__class__ is not dict:
        raise Irregular
    for key, value in doc.items():
        if value.__class__ is not str:
            if value is not None:
                raise Irregular
            doc[key] = ""
    return doc


def _string_list(doc: object) -> object:
    if doc.__class__ is not list:
        raise Irregular
    for index, value in enumerate(doc):
        if value.__class__ is not str:
            if value is not None:
                raise Irregular
            doc[index] = ""
    return doc
