"""Strategic merge patches: the type of a field decides how it is merged.

If the type says so, lists of objects are merged by the field's merge key, and lists of scalars as sets. Other lists
are replaced. Directives in the patch: ``$patch`` (replace and delete; merge is refused), ``$retainKeys``,
``$setElementOrder/LIST``, ``$deleteFromPrimitiveList/LIST``.

The order of items and the texts of errors are upstream's. Both the current document and the patch are changed: pass
copies.

upstream: apimachinery pkg/util/strategicpatch/patch.go
"""

import json
import math
import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import cast

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.apply.gofmt import go_type, go_value, same, same_type
from kcm_cli.sandbox.apiserver.schema.model import Field, Node

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList"
ELEMENT_ORDER = "$setElementOrder"

BAD_PRIMITIVE_LIST = "invalid patch format of primitive list"
BAD_RETAIN_KEYS = "invalid patch format of retainKeys"
BAD_ELEMENT_ORDER = "invalid patch format of setElementOrder list"
LIST_OF_LISTS = "lists of lists are not supported"

Items = list[object]
_FREE = Node("any")
_NO_FIELD = Field("", _FREE)


class StrategicError(Exception):
    """The patch cannot be merged. ``code`` is 400, 422 (whose text the client does not see) or 500."""

    def __init__(self, text: str, code: int = 500) -> None:
        super().__init__(text)
        self.code = code


def merge(node: Node, current: Doc, patch: Doc) -> Doc:
    """The current document with the patch merged in. Raises StrategicError."""
    return _merge_map(node, current, patch)


def _merge_map(node: Node, current: Doc, patch: Doc) -> Doc:
    if DIRECTIVE in patch:
        return _whole_map(patch)
    _retain_keys(current, patch)
    _merge_ordered(node, current, patch)
    for name, value in list(patch.items()):
        deleting = name.startswith(DELETE_FROM)
        key = _list_name(name, DELETE_FROM, BAD_PRIMITIVE_LIST) if deleting else name
        if value is None:
            current.pop(key, None)
        elif key not in current or not same_type(current[key], value):
            if not deleting:
                _take(current, key, value)
        elif isinstance(value, dict):
            current[key] = _merge_field(_field(node, key), cast("Doc", current[key]), value)
        elif isinstance(value, list):
            current[key] = _merge_list_field(_field(node, key), cast("Items", current[key]), value, deleting=deleting)
        else:
            current[key] = value
    return current


def _whole_map(patch: Doc) -> Doc:
    """A map with a ``$patch`` directive."""
    directive = patch[DIRECTIVE]
    if directive == "replace":
        del patch[DIRECTIVE]
        return patch
    if directive == "delete":
        return {}
    raise StrategicError(f"unknown patch type: {_plain(directive)} in map: {go_value(patch)}")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else f"%!s({go_type(value)}={go_value(value)})"


def _take(current: Doc, key: str, value: object) -> None:
    """Set a value that is not merged: without nulls, and without maps that have directives."""
    kept = value
    if value.__class__ in _NESTED and _PRUNED.search(codec.encode(value)):
        kept = _without_directives(value, nulls=False)
    if kept is _NOTHING:
        current.pop(key, None)
    else:
        current[key] = kept


def _without_directives(value: object, *, nulls: bool = True) -> object:
    """A map or list without maps that have directives, changed in place; _NOTHING if it is such a map. ``nulls``:
    whether maps keep theirs."""
    if value.__class__ is dict:
        doc = cast("Doc", value)
        if DIRECTIVE in doc and (nulls or doc[DIRECTIVE] is not None):
            return _NOTHING
        for key, item in list(doc.items()):
            if item is None:
                kept = item if nulls else _NOTHING
            elif item.__class__ in _NESTED:
                kept = _without_directives(item, nulls=nulls)
            else:
                continue
            if kept is _NOTHING:
                del doc[key]
            else:
                doc[key] = kept
        return doc
    items = cast("Items", value)
    if any([item.__class__ in _NESTED for item in items]):
        parts = [_without_directives(item, nulls=nulls) if item.__class__ in _NESTED else item for item in items]
        return [part for part in parts if part is not _NOTHING]
    return items


_NOTHING = object()
_NESTED = (dict, list)
_PRUNED = re.compile(rb"null|\$patch")
"""In all encoded values that have a null or a directive."""


def _field(node: Node, key: str) -> Field:
    """The field of a key. Values in maps and free JSON are merged without a strategy."""
    if node.kind != "struct":
        return Field(key, node.item if node.kind == "map" and node.item else _FREE)
    found = node.fields.get(key)
    if found is None:
        if node.open:
            return _NO_FIELD
        raise StrategicError(f"unable to find api field in struct {node.struct} for the json field {quote(key)}")
    return found


def _merge_field(field: Field, current: Doc, patch: Doc) -> Doc:
    return patch if "replace" in field.strategy else _merge_map(field.node, current, patch)


def _merge_list_field(field: Field, current: Items, patch: Items, *, deleting: bool) -> Items:
    if deleting:
        return _merge_list(field, current, patch, deleting=True)
    return _merged_again(field, current, patch) if "merge" in field.strategy else patch


_KEPT, _LONGEST = 256, 4096


def _merged_again(field: Field, current: Items, patch: Items) -> Items:
    """The merged list. Results of short lists are cached: kubelets report the same conditions for many pods in a
    second."""
    if field.merge_key:
        before, data = codec.encode(current), codec.encode(patch)
        if len(before) + len(data) <= _LONGEST and b"$" not in data:
            return codec.decode(_merged(field, before, data), list)
    return _merge_list(field, current, patch, deleting=False)


@lru_cache(_KEPT)
def _merged(field: Field, current: bytes, patch: bytes) -> bytes:
    merged = _merge_list(field, codec.decode(current, list), codec.decode(patch, list), deleting=False)
    return codec.encode(merged)


# --- $retainKeys and $setElementOrder --------------------------------------------------------------------


def _retain_keys(current: Doc, patch: Doc) -> None:
    """Remove the keys of the current map that ``$retainKeys`` does not have. It must have every key of the patch."""
    if RETAIN_KEYS not in patch:
        return
    names = patch.pop(RETAIN_KEYS)
    if not isinstance(names, list):
        raise StrategicError(BAD_RETAIN_KEYS, 400)
    kept = {name for name in names if isinstance(name, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_FROM, ELEMENT_ORDER)) and key not in kept:
            raise StrategicError(BAD_RETAIN_KEYS, 400)
    for key in [key for key in current if key not in kept]:
        del current[key]


def _merge_ordered(node: Node, current: Doc, patch: Doc) -> None:
    """Merge the lists that have a ``$setElementOrder``, and sort them by it."""
    for name in [key for key in patch if key.startswith(ELEMENT_ORDER)]:
        order = patch.pop(name)
        if not isinstance(order, list):
            raise _bad_type([], order)
        key = _list_name(name, ELEMENT_ORDER, BAD_ELEMENT_ORDER)
        live, given = _optional_list(current, key), _optional_list(patch, key)
        field = _field(node, key)
        _check_order(given or [], order, field.merge_key)
        merged = _merged_lists(field, live, given)
        if merged is None:
            continue
        ours, others = _partition(merged, order, field.merge_key)
        maps = element_type(live or [], given or []) is dict
        known = (
            _refilled(live or [], given or [], field.merge_key) if maps and "merge" in field.strategy else live or []
        )
        current[key] = _in_order(ours, others, order, known, field.merge_key if maps else None)
        patch.pop(key, None)


def _refilled(live: Items, given: Items, key: str) -> Items:
    """The live list by which the merged items are sorted: where the patch deletes items, its new ones follow the rest,
    as long as there is room.

    upstream: deleteMatchingEntries and mergeSliceWithoutSpecialElements change the array that the live list has, too
    """
    docs = [cast("Doc", item) for item in given]
    deleted = {_identity(doc.get(key)) for doc in docs if doc.get(DIRECTIVE) == "delete"}
    if not deleted:
        return live
    kept = [item for item in live if _identity(cast("Doc", item).get(key)) not in deleted]
    places: dict[Hashable, object] = {_identity(cast("Doc", item).get(key)): item for item in kept}
    of_live = len(places)
    for doc in docs:
        if DIRECTIVE not in doc:
            places.setdefault(_identity(doc.get(key)), doc)
    added = islice(places.values(), of_live, of_live + len(live) - len(kept))
    return [*kept, *added]


def _merged_lists(field: Field, live: Items | None, given: Items | None) -> Items | None:
    if given is None:
        return live
    if live is None:
        return cast("Items", _without_directives(given))
    return _merge_list_field(field, live, given, deleting=False)


def _optional_list(doc: Doc, key: str) -> Items | None:
    if key not in doc:
        return None
    value = doc[key]
    if not isinstance(value, list):
        raise _bad_type([], value)
    return value


def _list_name(name: str, prefix: str, problem: str) -> str:
    head, slash, key = name.partition("/")
    if not slash or head != prefix:
        raise StrategicError(problem, 400)
    return key


def _check_order(given: Items, order: Items, merge_key: str) -> None:
    """The items of the patch must be in ``order``, in the same sequence. Raises StrategicError."""
    if not order or not given:
        return
    if merge_key:
        for item in given:
            if not isinstance(item, dict):
                raise _bad_type({}, item)
        items = [item for item in given if cast("Doc", item).get(DIRECTIVE) != "delete"]
    else:
        items = given
    at = place = 0
    while at < len(items) and place < len(order):
        item = items[at]
        if isinstance(item, dict) and DIRECTIVE in item:
            at += 1
            continue
        at += _same_key(item, order[place], merge_key)
        place += 1
    if at < len(items):
        raise StrategicError(
            f"The order in patch list:\n{go_value(given)}\n doesn't match {ELEMENT_ORDER} list:\n{go_value(order)}\n"
        )


def _same_key(left: object, right: object, merge_key: str) -> bool:
    return same(key_of(left, merge_key), key_of(right, merge_key)) if merge_key else same(left, right)


def key_of(item: object, merge_key: str) -> object:
    """The value of the merge key. Raises StrategicError if it is missing."""
    if not isinstance(item, dict):
        raise _bad_type({}, item)
    if merge_key not in item:
        raise StrategicError(f"map: {go_value(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _bad_type(expected: object, actual: object) -> StrategicError:
    return StrategicError(f"expected a {go_type(expected)}, but received a {go_type(actual)}")


# --- lists -----------------------------------------------------------------------------------------------


def _merge_list(field: Field, current: Items, patch: Items, *, deleting: bool) -> Items:
    if not current and not patch:
        return current
    if element_type(current, patch) is not dict:
        if deleting:
            deleted = {_identity(item) for item in patch}
            return [item for item in current if _identity(item) not in deleted]
        merged = _distinct(current + patch)
        ours, others = _partition(merged, patch, "")
        return _in_order(ours, others, patch, current, None)
    key = field.merge_key
    if not key:
        raise StrategicError(f"cannot merge lists without merge key for {_kind_name(field.node.item)}")
    current, patch = _apply_item_directives(current, patch, key)
    merged = _merge_items(field.node.item or _FREE, current, patch, key)
    ours, others = _partition(merged, patch, key)
    return _in_order(ours, others, patch, current, key)


def _kind_name(node: Node | None) -> str:
    return "map" if node is not None and node.kind == "map" else "struct"


def element_type(*lists: Items) -> type:
    """The type of all items. Raises StrategicError if they differ or there are none."""
    found: type | None = None
    for item in (item for items in lists for item in items):
        if found is None:
            found = type(item)
            if found is list:
                raise StrategicError(LIST_OF_LISTS, 422)
        elif type(item) is not found:
            raise StrategicError(f"list element types are not identical: {go_value(list(lists))}")
    if found is None:
        raise StrategicError("no elements in any of the given slices")
    return found


def _distinct(items: Items) -> Items:
    found: dict[Hashable, object] = {}
    for item in items:
        found.setdefault(_identity(item), item)
    return list(found.values())


def _apply_item_directives(current: Items, patch: Items, key: str) -> tuple[Items, Items]:
    """Apply the ``$patch`` directives of items; returns the rest of both lists."""
    plain: Items = []
    deleted = set()
    replace = False
    for item in patch:
        doc = cast("Doc", item)
        if DIRECTIVE not in doc:
            plain.append(item)
            continue
        directive = doc[DIRECTIVE]
        if directive == "delete":
            deleted.add(_identity(key_of(doc, key)))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise StrategicError("merging lists cannot yet be specified in the patch")
        else:
            raise StrategicError(f"unknown patch type: {_plain(directive)} in map: {go_value(doc)}")
    if replace:
        return plain, []
    if not deleted:
        return current, plain
    return [item for item in current if _identity(cast("Doc", item).get(key)) not in deleted], plain


def _merge_items(node: Node, current: Items, patch: Items, key: str) -> Items:
    merged = list(current)
    places: dict[Hashable, int] = {}
    for index, item in enumerate(current):
        places.setdefault(_identity(cast("Doc", item).get(key)), index)
    for item in patch:
        at = places.setdefault(_identity(key_of(item, key)), len(merged))
        if at == len(merged):
            merged.append(item)
        else:
            merged[at] = _merge_map(node, cast("Doc", merged[at]), cast("Doc", item))
    return merged


def _identity(value: object) -> Hashable:
    """A key that is equal for values that are the ``same``, for comparing long lists in linear time."""
    return type(value), json.dumps(value, sort_keys=True) if isinstance(value, (dict, list)) else value


def _partition(items: Items, named: Items, key: str) -> tuple[Items, Items]:
    """The items that are in ``named``, and the others."""
    ours: Items = []
    others: Items = []
    place = _places(named, key or None)
    for item in items:
        (ours if place(item) >= 0 else others).append(item)
    return ours, others


def _places(order: Items, key: str | None) -> Callable[[object], int]:
    """Returns the index of an item in ``order``, by its merge key or its value; -1 if it is absent."""
    places: dict[Hashable, int] = {}
    unread = -1
    for index, other in enumerate(order):
        if key is None:
            places.setdefault(_identity(other), index)
        elif isinstance(other, dict):
            places.setdefault(_identity(other.get(key)), index)
        else:
            unread = index
            break

    def place(item: object) -> int:
        found = places.get(_identity(item if key is None else key_of(item, key)), -1)
        if found < 0 <= unread:
            raise StrategicError(f"value for key {unread} is not a map")
        return found

    return place


def _in_order(ours: Items, others: Items, order: Items, live: Items, key: str | None) -> Items:
    """Merge the items of the patch, in ``order``, with the others, in the order of the live list."""
    if key is not None:
        for item in [*ours, *order, *others, *live]:
            key_of(item, key)
    left, right = _sorted(others, live, key), _sorted(ours, order, key)
    if not left:
        return right
    live_place = _places(live, key)
    out: Items = []
    i = j = 0
    while i < len(left) and j < len(right):
        before, after = live_place(left[i]), live_place(right[j])
        if 0 <= before < after:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


def _sorted(items: Items, order: Items, key: str | None) -> Items:
    """Sort by index in ``order``, with items to delete at the end. An item that is absent from ``order`` is put before
    all items that precede it; a later item passes it only if its index is lower than all of theirs."""
    deleted: Items = []
    if key is not None:
        deleted = [item for item in items if cast("Doc", item).get(DIRECTIVE) == "delete"]
        items = [item for item in items if cast("Doc", item).get(DIRECTIVE) != "delete"]
    out: list[tuple[float, int, object]] = []
    lowest = math.inf
    place_of = _places(order, key)
    for number, item in enumerate(items):
        place = place_of(item)
        if place < 0:
            out.append((lowest, -number - 1, item))
        else:
            lowest = min(lowest, place)
            out.append((place, number, item))
    return [item for _, _, item in sorted(out, key=itemgetter(0, 1))] + deleted
