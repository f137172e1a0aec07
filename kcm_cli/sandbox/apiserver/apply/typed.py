"""The operations of server-side apply on documents: validate, list fields, merge, remove fields.

Functions change no argument. Their results may share parts with the arguments.

upstream: sigs.k8s.io/structured-merge-diff typed/{validate,merge,tofieldset,remove}.go
"""

from collections import Counter, deque
from collections.abc import Collection
from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.apply import atoms
from kcm_cli.sandbox.apiserver.apply.atoms import Form, form
from kcm_cli.sandbox.apiserver.apply.elements import NoElement, item_element, text
from kcm_cli.sandbox.apiserver.apply.fieldset import LEAF, SELF, Fields, is_member
from kcm_cli.sandbox.apiserver.apply.gofmt import Foreign, go_type, go_value
from kcm_cli.sandbox.apiserver.schema.model import Node

_ABSENT = object()
_ANYTHING = frozenset(("raw", "any", "or", "intorstr"))
_UNDEFINED = "{{undefined}}"
Items = list[object]


# --- validation ------------------------------------------------------------------------------------------


def problems(node: Node, value: object, path: str = "", *, duplicates: bool = False) -> list[str]:
    """Where a document does not match its type: ``path: text`` each. ``duplicates``: whether lists may repeat items.

    Of a number or string (``intorstr``) the schema says nothing: what it is not, its decoder finds.
    """
    if isinstance(value, Foreign) and node.kind in _ANYTHING:
        return [_at(path, f"expected map, got {_shown(value)}")]
    if value is None or (node.kind in _ANYTHING and not (node.fields and isinstance(value, dict))):
        return []
    if node.kind in ("struct", "map", "object", "any"):
        return _map_problems(node, value, path, duplicates=duplicates)
    if node.kind == "list":
        return _list_problems(node, value, path, duplicates=duplicates)
    wrong = _scalar_problem(node, value)
    return [_at(path, wrong)] if wrong else []


def listed(found: list[str]) -> str:
    """The text of all problems; empty if there are none."""
    return "\n  ".join(["errors:", *found]) if len(found) > 1 else "".join(found)


def _at(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _map_problems(node: Node, value: object, path: str, *, duplicates: bool) -> list[str]:
    if not isinstance(value, dict):
        return [_at(path, f"expected map, got {_shown(value)}")]
    found: list[str] = []
    for key, item in value.items():
        if node.kind == "struct" and not node.open and key not in node.fields:
            return [*found, _at(f"{path}.{key}", "field not declared in schema")]
        found += problems(atoms.entry(node, key), item, f"{path}.{key}", duplicates=duplicates)
    return found


def _list_problems(node: Node, value: object, path: str, *, duplicates: bool) -> list[str]:
    if not isinstance(value, list):
        return [_at(path, f"expected list, got {_shown(value)}")]
    found: list[str] = []
    seen: set[str] = set()
    kind = atoms.item(node)
    for index, item in enumerate(value):
        element, shown = f"i:{index}", ""
        if node.list_type != "atomic" and (hidden := _hidden(node, item)):
            shown = hidden
        elif node.list_type != "atomic":
            try:
                element = item_element(node, item)
            except NoElement as error:
                return [*found, _at(path, f"element {index}: {error}")]
            if element in seen and not duplicates:
                found.append(_at(path, f"duplicate entries for key {text(element)}"))
            seen.add(element)
        found += problems(kind, item, path + (shown or text(element)), duplicates=duplicates)
    return found


def _hidden(node: Node, item: object) -> str:
    """How the path shows an item that is identified by a foreign value; empty for other items."""
    if isinstance(item, Foreign) and node.list_type != "map":
        return f"[={_UNDEFINED}]"
    keys = [key for key in node.keys if isinstance(item.get(key), Foreign)] if isinstance(item, dict) else []
    return f"[{','.join(f'{key}={_UNDEFINED}' for key in keys)}]" if keys else ""


def _scalar_problem(node: Node, value: object) -> str:
    if node.kind in ("string", "bytes"):
        return "" if isinstance(value, str) else f"expected string, got &value.valueUnstructured{{Value:{_go(value)}}}"
    if node.kind == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {_shown(value)}"
    if node.kind in ("int32", "int64", "number"):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if fits else f"expected numeric (int or float), got {go_type(value)}"
    return f"expected any scalar, got {_shown(value)}" if isinstance(value, dict | list | Foreign) else ""


def _shown(value: object) -> str:
    return f"&{{{go_value(value)}}}"


def _go(value: object) -> str:
    """``%#v`` of a decoded JSON value."""
    if isinstance(value, dict):
        inner = ", ".join(f"{quote(key)}:{_go(item)}" for key, item in sorted(value.items()))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go, value))}}}"
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, Foreign):
        return value.source
    return quote(value) if isinstance(value, str) else go_value(value)


# --- fields ----------------------------------------------------------------------------------------------


def field_set(node: Node, doc: Doc) -> Fields:
    """The fields that a document has: leaves, items of lists and entries of maps, but no structs."""
    return _fields(node, doc)


def _fields(node: Node, value: object) -> Fields:
    """The fields below a map or a list of items."""
    out: Fields = {}
    if form(node, value) is Form.MAP and isinstance(value, dict):
        for key, item in value.items():
            empty = item is None or item == {}
            out[f"f:{key}"] = _entry(atoms.entry(node, key), item, member=empty or not atoms.declared(node, key))
    elif isinstance(value, list):
        elements = [item_element(node, item) for item in value]
        kind, repeated = atoms.item(node), _repeated(elements)
        for element, item in zip(elements, value, strict=True):
            out[element] = LEAF if element in repeated else _entry(kind, item, member=True)
    return {key: entry for key, entry in out.items() if entry is not _NOTHING}


def _repeated(elements: list[str]) -> Collection[str]:
    if len(set(elements)) == len(elements):
        return ()
    return {element for element, times in Counter(elements).items() if times > 1}


_NOTHING: Fields = {"": {}}


def _entry(node: Node, value: object, *, member: bool) -> Fields:
    """The entry of one value; ``_NOTHING`` if neither it nor anything below belongs to the set."""
    if form(node, value) is Form.WHOLE:
        return LEAF
    below = _fields(node, value)
    if member:
        return {SELF: LEAF, **below} if below else LEAF
    return below or _NOTHING


# --- merging ---------------------------------------------------------------------------------------------


def merge(node: Node, live: Doc, config: Doc) -> Doc:
    """The live document with the configuration merged into it."""
    return cast("Doc", _merge(node, live, config) or {})


def _merge(node: Node, live: object, config: object) -> object:
    """``_ABSENT`` stands for a value that is missing, as argument and as result."""
    if config is _ABSENT:
        return live
    shape = form(node, config if config is not None else live)
    other = live if live is not _ABSENT else None
    if shape is Form.WHOLE or (not config and not other) or not shape.fits(other):
        return config
    if shape is Form.MAP:
        return _merge_maps(node, cast("Doc", other or {}), cast("Doc", config or {}))
    return _merge_items(node, cast("Items", other or []), cast("Items", config or []))


def _merge_maps(node: Node, live: Doc, config: Doc) -> object:
    out = dict(live)
    for key, value in config.items():
        merged = _merge(atoms.entry(node, key), live.get(key, _ABSENT), value)
        if merged is not _ABSENT:
            out[key] = merged
    return out or _ABSENT


def _merge_items(node: Node, live: Items, config: Items) -> object:  # noqa: C901 - one walk along two lists
    """The items of the configuration keep their order; the order of live items is kept where this allows it."""
    kind = atoms.item(node)
    ours = {item_element(node, item): item for item in config}
    ours_order = list(ours)
    theirs_order = [item_element(node, item) for item in live]
    theirs: dict[str, object] = {}
    for element, item in zip(theirs_order, live, strict=True):
        theirs[element] = None if element in theirs else item  # repeated items are not merged
    shared = deque(element for element in ours_order if element in theirs)
    out: Items = []
    done: set[str] = set()

    def take(element: str) -> None:
        done.add(element)
        merged = _merge(kind, theirs.get(element, _ABSENT), ours[element])
        if merged is not _ABSENT:
            out.append(merged)
        if shared and shared[0] == element:
            shared.popleft()

    left = right = 0
    while left < len(theirs_order) or right < len(ours_order):
        if left < len(theirs_order):
            element = theirs_order[left]
            if right < len(ours_order):
                if element == ours_order[right]:
                    take(element)
                    left, right = left + 1, right + 1
                    continue
                if element in ours and shared and shared[0] != element:
                    left += 1  # added later, at its position in the configuration
                    continue
            if element not in ours:
                out.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(ours_order):
            take(ours_order[right])
            right += 1
    return out or _ABSENT


# --- removing --------------------------------------------------------------------------------------------


def remove(node: Node, doc: Doc, removed: Fields) -> Doc:
    """The document without these fields. Maps and lists that lose their last entry are kept, empty."""
    return cast("Doc", _remove(node, doc, removed))


def _remove(node: Node, value: object, removed: Fields) -> object:
    if not value or form(node, value) is Form.WHOLE:
        return _emptied(node, value)
    if isinstance(value, dict):
        out: Doc = {}
        for key, item in value.items():
            entry = removed.get(f"f:{key}")
            if entry is None:
                out[key] = item
            elif not is_member(entry):
                out[key] = _remove(atoms.entry(node, key), item, entry)
        return out
    kept: Items = []
    for item in cast("Items", value):
        entry = removed.get(item_element(node, item))
        if entry is None:
            kept.append(item)
        elif not is_member(entry):
            kept.append(_remove(atoms.item(node), item, entry))
    return kept


def with_nulls(node: Node, doc: Doc, config: Doc) -> Doc:
    """The document with null where the configuration has it and nothing is left.

    upstream, since kubernetes#140296: an empty object may lack fields that its schema requires
    """
    return cast("Doc", _with_nulls(node, doc, config))


def _with_nulls(node: Node, value: object, config: object) -> object:
    if not value:
        return None if config is None else value
    if form(node, value) is Form.WHOLE or value.__class__ is not config.__class__:
        return value
    if isinstance(value, dict):
        wanted = cast("Doc", config)
        made = {key: _with_nulls(atoms.entry(node, key), value[key], wanted[key]) for key in value.keys() & wanted}
        return {**value, **made}
    items = {item_element(node, item): item for item in cast("Items", config)}
    elements = ((item_element(node, item), item) for item in cast("Items", value))
    return [_with_nulls(atoms.item(node), item, items.get(element, item)) for element, item in elements]


def _emptied(node: Node, value: object) -> object:
    """The result of removing fields of an empty or atomic value."""
    if isinstance(value, dict):
        return {}
    return [] if isinstance(value, list) else value
