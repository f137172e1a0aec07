"""Sets of field paths in the form of fieldsV1: a tree of dicts.

An entry ``"f:x": {}`` means that the path ends there and belongs to the set; ``"f:x": {".": {}, ...}`` that
it belongs and has members below; without the ``.`` only the members below belong. The keys of an entry are path
elements: ``f:name`` a field, ``k:{...}`` an item of a list by its key fields, ``v:value`` an item of a set,
``i:0`` an index.

Sets are immutable: functions change no argument, and their results share parts with the arguments.

upstream: sigs.k8s.io/structured-merge-diff fieldpath/set.go
"""

from collections.abc import Iterator

from kcm_cli.sandbox.apiserver.apply.elements import order
from kcm_cli.sandbox.apiserver.schema.model import Node

Fields = dict[str, "Fields"]
"""A set, or the part of it below an entry."""

LEAF: Fields = {}
"""The entry that ends a path."""
SELF = "."
_ONLY_SELF = {SELF}


def is_member(entry: Fields) -> bool:
    """Whether the path that leads to this entry belongs to the set."""
    return not entry or SELF in entry


def union(left: Fields, right: Fields) -> Fields:
    """All paths of both."""
    if not left:
        return right
    if not right:
        return left
    if len(left) < len(right):  # copy the larger one, iterate over the smaller one
        left, right = right, left
    out = dict(left)
    for key, entry in right.items():
        old = out.get(key)
        out[key] = entry if old is None else _both(old, entry)
    return out


def _both(left: Fields, right: Fields) -> Fields:
    """The union of two entries, which may be leaves."""
    if left is right or (not left and not right):
        return left
    merged = union(left, right)
    if SELF not in merged and (not left or not right):
        merged = {SELF: LEAF, **merged}
    return merged


def intersection(left: Fields, right: Fields) -> Fields:
    """The paths that are in both."""
    out: Fields = {}
    for key, entry in left.items():
        other = right.get(key)
        if other is None or key == SELF:
            continue
        below = intersection(entry, other)
        if is_member(entry) and is_member(other):
            out[key] = {SELF: LEAF, **below} if below else LEAF
        elif below:
            out[key] = below
    return out


def difference(left: Fields, right: Fields) -> Fields:
    """The paths of ``left`` that are not in ``right``; ``left`` itself where that changes nothing."""
    out: Fields | None = None
    for key in right if len(right) <= len(left) else left:
        entry, other = left.get(key), right.get(key)
        if entry is None or other is None or key == SELF:
            continue
        rest = _without(entry, other)
        if rest is entry:
            continue
        if out is None:
            out = dict(left)
        if rest is None:
            del out[key]
        else:
            out[key] = rest
    return left if out is None else out


def _without(entry: Fields, other: Fields) -> Fields | None:
    """What remains of an entry; None if nothing does, the entry itself if all does."""
    below = difference(entry, other)
    if is_member(entry) and is_member(other):
        return {key: value for key, value in below.items() if key != SELF} or None
    if below is entry:
        return entry
    return LEAF if below.keys() == _ONLY_SELF else (below or None)


def recursive_difference(left: Fields, right: Fields) -> Fields:
    """The paths of ``left`` that are neither in ``right`` nor below one of its paths."""
    out: Fields = {}
    for key, entry in left.items():
        other = right.get(key)
        if other is None or key == SELF:
            out[key] = entry
        elif not is_member(other):
            rest = recursive_difference(entry, other)
            if rest or not entry:
                out[key] = LEAF if rest.keys() <= _ONLY_SELF else rest
    return out


def with_named_fields(fields: Fields, node: Node | None) -> Fields:
    """The set, and the fields of structs (not entries of maps or items) on the way to its paths.

    upstream: Set.EnsureNamedFieldsAreMembers
    """
    out: Fields = {}
    for key, entry in fields.items():
        if not entry:
            out[key] = entry
            continue
        child, named = _below(node, key)
        inner = with_named_fields(entry, child)
        out[key] = {SELF: LEAF, **inner} if named and SELF not in inner else inner
    return out


def _below(node: Node | None, key: str) -> tuple[Node | None, bool]:
    """The type that a path element leads to, and whether it is a field of a struct."""
    if node is None:
        return None, False
    if key.startswith("f:"):
        field = node.fields.get(key[2:])
        return (field.node, True) if field is not None else (node.item, False)
    return node.item, False


def with_atoms(fields: Fields, node: Node) -> Fields:
    """The set for a type that may have changed since: maps and lists that are owned as a whole by now have one entry.
    The same object if it has nothing of the kind.

    upstream: sigs.k8s.io/structured-merge-diff typed/reconcile_schema.go
    """
    out: Fields | None = None
    for key, entry in fields.items():
        child = None if key == SELF else _typed_below(node, key)
        if child is None:
            continue
        made = LEAF if entry and _is_atom(child) else with_atoms(entry, child)
        if made is not entry:
            out = dict(fields) if out is None else out
            out[key] = made
    return fields if out is None else out


def _typed_below(node: Node, key: str) -> Node | None:
    field = node.fields.get(key[2:]) if key.startswith("f:") else None
    return node.item if field is None else field.node


def _is_atom(node: Node) -> bool:
    """Whether a map or list of this type is owned as a whole."""
    return node.atomic if node.kind in ("struct", "map") else node.kind == "list" and node.list_type == "atomic"


def paths(fields: Fields, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All paths in order: those that end at a level before longer ones."""
    keys = sorted((key for key in fields if key != SELF), key=order)
    for key in keys:
        if is_member(fields[key]):
            yield (*prefix, key)
    for key in keys:
        if fields[key]:
            yield from paths(fields[key], (*prefix, key))


def ordered(fields: Fields) -> Fields:
    """The same set, in the order in which upstream writes it."""
    keys = sorted((key for key in fields if key != SELF), key=order)
    out: Fields = {SELF: LEAF} if SELF in fields else {}
    for key in keys:
        entry = fields[key]
        out[key] = ordered(entry) if entry else entry
    return out


def of_paths(*wanted: tuple[str, ...]) -> Fields:
    """A set of field names, given as paths: ``("metadata", "labels")``."""
    out: Fields = {}
    for path in wanted:
        at = out
        for name in path[:-1]:
            at = at.setdefault(f"f:{name}", {})
        at[f"f:{path[-1]}"] = {}
    return out
