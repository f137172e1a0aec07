"""Compares two versions of an object: the fields that were added, modified and removed. Runs on every write.

``Comparer`` compiles one function per type. Equal values are skipped by a comparison in C, so that an update costs
what it changes, and a create one pass over the object.

upstream: sigs.k8s.io/structured-merge-diff typed/compare.go
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import cast

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply import atoms
from kcm_cli.sandbox.apiserver.apply.atoms import Form
from kcm_cli.sandbox.apiserver.apply.elements import item_element
from kcm_cli.sandbox.apiserver.apply.fieldset import LEAF, SELF, Fields, union
from kcm_cli.sandbox.apiserver.schema.model import Node

Whole = Callable[[object], Fields]
"""Returns the fields of a value that was added or removed."""


class Changes:
    """The difference between two versions of an object, as three sets."""

    __slots__ = ("added", "modified", "removed")

    def __init__(self) -> None:
        self.added: Fields = {}
        self.modified: Fields = {}
        self.removed: Fields = {}

    def __bool__(self) -> bool:
        return bool(self.added or self.modified or self.removed)


_KEPT = 4096
_KEPT_LISTS, _LONGEST = 256, 8192


class Comparer:
    """Compares documents of any type. Compiled functions are kept."""

    def __init__(self) -> None:
        self._wholes: dict[Node, Whole] = {}
        self._known: dict[tuple[Node, bytes, bytes], tuple[Fields, Fields, Fields]] = {}

    def compare(self, node: Node, old: Doc, new: Doc) -> Changes:
        """Raises NoElement for a set or keyed list with an item that has no path element."""
        changes = Changes()
        self._map(node, old, new, (changes.added, changes.modified, changes.removed))
        return changes

    def whole(self, node: Node) -> Whole:
        """The function for values of this type."""
        made = self._wholes.get(node)
        if made is None:
            if len(self._wholes) >= _KEPT:
                self._wholes.clear()
            made = self._wholes[node] = self._make(node)
        return made

    def emptied(self, node: Node, old: object, new: object, stated: object) -> Fields:
        """The unchanged fields, owned as a whole, within whose lists the client stated empty lists or maps.

        ``stated``: the new value as it was sent; decoding has dropped empty values from ``new``. Upstream compares
        such lists with reflect.DeepEqual, and so distinguishes empty from absent.
        """
        if old.__class__ is not new.__class__ or new.__class__ is not stated.__class__:
            return {}
        if atoms.form(node, new) is Form.WHOLE:
            return {SELF: LEAF} if old == new and _states_empty(new, stated, in_list=False) else {}
        found: Fields = {}
        for key, child, before, after, sent in self._children(node, old, new, stated):
            below = self.emptied(child, before, after, sent)
            if below:
                found[key] = LEAF if below == {SELF: LEAF} else below
        return found

    def _children(
        self, node: Node, old: object, new: object, stated: object
    ) -> Iterator[tuple[str, Node, object, object, object]]:
        """The parts that all three have: path element, type, and the values."""
        if isinstance(new, dict):
            before, sent = cast("Doc", old), cast("Doc", stated)
            for key in new:
                if key in before and key in sent:
                    yield f"f:{key}", atoms.entry(node, key), before[key], new[key], sent[key]
        elif isinstance(new, list) and len(new) == len(cast("list[object]", stated)):
            items = _by_element(node, cast("list[object]", old))
            for item, sent_item in zip(new, cast("list[object]", stated), strict=True):
                element = item_element(node, item)
                if len(earlier := items.get(element, [])) == 1:
                    yield element, atoms.item(node), earlier[0], item, sent_item

    # --- added and removed values --------------------------------------------------------------------

    def _make(self, node: Node) -> Whole:
        if node.kind in ("struct", "map") and not node.atomic:
            return self._whole_struct(node) if node.kind == "struct" else self._whole_map(node)
        if node.kind == "list" and node.list_type != "atomic":
            return lambda value: self._whole_items(node, value)
        if node.kind == "any" and node.fields:
            whole = self._whole_struct(node)
            return lambda value: whole(value) if isinstance(value, dict) else LEAF
        return self._whole_any if node.kind in atoms.OPEN_FORMS else _leaf

    def _whole_struct(self, node: Node) -> Whole:
        labels: dict[str, tuple[str, Whole | None]] = {}
        for name, field in node.fields.items():
            owned_whole = atoms.form(field.node, 0) is Form.WHOLE and field.node.kind not in atoms.OPEN_FORMS
            labels[name] = (f"f:{name}", None if owned_whole else self._later(labels, name, field.node))
        find = labels.get

        def entry(value: object) -> Fields:
            if not value:
                return LEAF
            out: Fields = {SELF: LEAF}
            for key, item in cast("Doc", value).items():
                known = find(key)
                if known is None:
                    out[f"f:{key}"] = self._whole_any(item)
                else:
                    label, whole = known
                    out[label] = LEAF if whole is None else whole(item)
            return out

        return entry

    def _later(self, labels: dict[str, tuple[str, Whole | None]], name: str, node: Node) -> Whole:
        """Compile a field's type when it is first needed."""

        def entry(value: object) -> Fields:
            made = self.whole(node)
            labels[name] = (f"f:{name}", made)
            return made(value)

        return entry

    def _whole_map(self, node: Node) -> Whole:
        item = atoms.item(node) if node.item is not None else atoms.ANY
        if item.scalar:
            return _whole_scalar_map

        def entry(value: object) -> Fields:
            if not value:
                return LEAF
            whole = self.whole(item)
            out: Fields = {SELF: LEAF}
            for key, part in cast("Doc", value).items():
                out[f"f:{key}"] = whole(part)
            return out

        return entry

    def _whole_items(self, node: Node, value: object) -> Fields:
        if not value:
            return LEAF
        whole = self.whole(atoms.item(node))
        out: Fields = {SELF: LEAF}
        for item in cast("list[object]", value):
            element = item_element(node, item)
            out[element] = LEAF if element in out else whole(item)
        return out

    def _whole_any(self, value: object) -> Fields:
        if not isinstance(value, dict) or not value:
            return LEAF
        return {SELF: LEAF, **{f"f:{key}": self._whole_any(item) for key, item in value.items()}}

    # --- changed values ------------------------------------------------------------------------------

    def _value(self, node: Node, old: object, new: object, key: str, out: tuple[Fields, Fields, Fields]) -> None:
        """Put the differences under ``key`` of the three sets."""
        if old == new and old.__class__ is new.__class__:
            return
        form = atoms.form(node, new if new is not None else old)
        if form is Form.WHOLE or (not old and not new):
            if isinstance(old, dict) and new is not None and atoms.form(node, old) is Form.MAP:
                self._changed_form(node, old, new, key, out)
            out[1][key] = LEAF
            return
        if not form.fits(old) or not form.fits(new):
            self._changed_form(node, old, new, key, out)
            return
        inner: tuple[Fields, Fields, Fields] = ({}, {}, {})
        if form is Form.MAP:
            self._map(node, cast("Doc", old or {}), cast("Doc", new or {}), inner)
        else:
            self._items(node, cast("list[object]", old or []), cast("list[object]", new or []), inner)
        for target, found in zip(out, inner, strict=True):
            if found:
                target[key] = found

    def _changed_form(self, node: Node, old: object, new: object, key: str, out: tuple[Fields, Fields, Fields]) -> None:
        """A value of a type that accepts any JSON became a map, or is no longer one."""
        out[1][key] = LEAF
        for target, value in ((out[0], new), (out[2], old)):
            below = {k: v for k, v in self.whole(node)(value).items() if k != SELF} if Form.MAP.fits(value) else {}
            if below:
                target[key] = below

    def _map(self, node: Node, old: Doc, new: Doc, out: tuple[Fields, Fields, Fields]) -> None:
        declared = _declared(node)
        for key, value in new.items():
            if key in old:
                before = old[key]
                if before is not value and (before != value or before.__class__ is not value.__class__):
                    label, child = declared.get(key) or (f"f:{key}", atoms.entry(node, key))
                    self._value(child, before, value, label, out)
            else:
                label, child = declared.get(key) or (f"f:{key}", atoms.entry(node, key))
                out[0][label] = self.whole(child)(value)
        for key, value in old.items():
            if key not in new:
                out[2][f"f:{key}"] = self.whole(atoms.entry(node, key))(value)

    def _items(self, node: Node, old: list[object], new: list[object], out: tuple[Fields, Fields, Fields]) -> None:
        """Compare lists. Results are cached: kubelets report the same conditions for many pods in a second."""
        key = node, codec.encode(old), codec.encode(new)
        known = self._known.get(key)
        if known is None:
            known = ({}, {}, {})
            self._compare_items(node, old, new, known)
            if len(key[1]) + len(key[2]) <= _LONGEST:
                if len(self._known) >= _KEPT_LISTS:
                    self._known.clear()
                self._known[key] = known
        for target, found in zip(out, known, strict=True):
            target.update(found)

    def _compare_items(
        self, node: Node, old: list[object], new: list[object], out: tuple[Fields, Fields, Fields]
    ) -> None:
        before, after = _by_element(node, old), _by_element(node, new)
        kind = atoms.item(node)
        whole = self.whole(kind)
        added, modified, removed = out
        for element, items in after.items():
            earlier = before.get(element, [])
            if len(items) == 1 and len(earlier) == 1:
                self._value(kind, earlier[0], items[0], element, out)
            elif len(items) > 1 and len(earlier) > 1:
                if items != earlier:
                    modified[element] = LEAF
            elif len(items) > 1:
                added[element] = LEAF
                if earlier:
                    removed[element] = whole(earlier[0])
            else:
                added[element] = whole(items[0])
                if earlier:
                    removed[element] = LEAF
        for element, earlier in before.items():
            if element not in after:
                removed[element] = LEAF if len(earlier) > 1 else whole(earlier[0])


@lru_cache(1024)
def _declared(node: Node) -> dict[str, tuple[str, Node]]:
    """The declared fields of a type: path element and type."""
    return {name: (f"f:{name}", field.node) for name, field in node.fields.items()}


def taken(changes: Changes) -> Fields:
    """The fields that a change makes its writer own."""
    return union(changes.modified, changes.added)


def _states_empty(value: object, stated: object, *, in_list: bool) -> bool:
    """Whether an empty list or map is stated that the value lacks, in a list."""
    if isinstance(value, dict) and isinstance(stated, dict):
        return any(
            _states_empty(value[key], part, in_list=in_list)
            if value.get(key) is not None
            else in_list and part in ([], {})
            for key, part in stated.items()
        )
    if isinstance(value, list) and isinstance(stated, list) and len(value) == len(stated):
        return any(_states_empty(one, other, in_list=True) for one, other in zip(value, stated, strict=True))
    return False


def _leaf(value: object) -> Fields:
    return LEAF


def _whole_scalar_map(value: object) -> Fields:
    if not value:
        return LEAF
    out: Fields = {SELF: LEAF}
    for key in cast("Doc", value):
        out["f:" + key] = LEAF
    return out


def _by_element(node: Node, items: list[object]) -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for item in items:
        found.setdefault(item_element(node, item), []).append(item)
    return found
