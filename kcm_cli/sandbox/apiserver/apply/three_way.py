"""The patch that client-side ``kubectl apply`` sends: what the new manifest adds or changes in the live object, and the
removal of what the previous manifest had and the new one has not.

upstream: apimachinery pkg/util/strategicpatch/patch.go#CreateThreeWayMergePatch, pkg/util/jsonmergepatch
"""

from collections import Counter
from collections.abc import Iterator

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply.strategic import DELETE_FROM, DIRECTIVE, ELEMENT_ORDER, RETAIN_KEYS
from kcm_cli.sandbox.apiserver.schema.model import Field, Node

_FREE = Node("any")
Items = list[object]


def strategic_patch(node: Node, original: Doc, modified: Doc, current: Doc) -> Doc:
    """A strategic merge patch for a built-in kind. Empty if nothing is to be changed. Changes no argument.

    original: the previous manifest, empty if unknown. modified: the new one. current: the live object.
    """
    return _of_maps(node, original, modified, current)


def merge_patch(original: Doc, modified: Doc, current: Doc) -> Doc:
    """The same as a JSON merge patch, for custom kinds: lists are replaced as a whole."""
    return _of_maps(_FREE, original, modified, current)


def _of_maps(node: Node, original: Doc, modified: Doc, current: Doc) -> Doc:
    patch: Doc = {}
    for name, wanted in modified.items():
        before, live = original.get(name), current.get(name)
        field = _field(node, name)
        if isinstance(wanted, dict) and isinstance(live, dict) and "replace" not in field.strategy:
            known = before if isinstance(before, dict) else {}
            if inner := _of_union(field.node, known, wanted, live, retains="retainKeys" in field.strategy):
                patch[name] = inner
        elif isinstance(wanted, list) and isinstance(live, list) and "merge" in field.strategy:
            patch |= _of_lists(field, before if isinstance(before, list) else [], wanted, live)
        elif wanted is None:
            if name in current:
                patch[name] = None
        elif name not in current or not _same(wanted, live):
            patch[name] = wanted
    patch |= {name: None for name in original if name not in modified and name in current}
    return patch


def _of_union(node: Node, original: Doc, modified: Doc, current: Doc, *, retains: bool) -> Doc:
    """``retains``: keys that the new manifest does not have are removed, since only one member of a union is set."""
    patch = _of_maps(node, original, modified, current)
    if retains and (patch or current.keys() - modified.keys()):
        patch[RETAIN_KEYS] = sorted(name for name, value in modified.items() if value is not None)
    return patch


def _of_lists(field: Field, original: Items, modified: Items, current: Items) -> Doc:
    """The entries of a patch for a list that is merged: the items, and their order or those to remove."""
    key = field.merge_key
    if not key:
        return _of_scalars(field.name, original, modified, current)
    node = field.node.item or _FREE
    items: Items = list(_items(node, key, original, modified, current, retains="retainKeys" in field.strategy))
    kept = {codec.as_text(one) for one in _keys(modified, key)}
    gone = [one for one in _keys(original, key) if codec.as_text(one) not in kept]
    removed: Items = [{DIRECTIVE: "delete", key: one} for one in gone]
    if not (items or removed) and [codec.as_text(one) for one in _keys(current, key)] == [
        codec.as_text(one) for one in _keys(modified, key)
    ]:
        return {}
    order: Items = [{key: one} for one in _keys(modified, key)]
    found: Doc = {f"{ELEMENT_ORDER}/{field.name}": order}
    return {**found, field.name: [*items, *removed]} if items or removed else found


def _items(node: Node, key: str, original: Items, modified: Items, current: Items, *, retains: bool) -> Iterator[Doc]:
    """The items to add or change. Those with the same key (two protocols of one port) are paired in order."""
    seen: Counter[str] = Counter()
    before, live = _by_key(original, key), _by_key(current, key)
    for wanted in modified:
        if not isinstance(wanted, dict) or key not in wanted:
            continue
        text = codec.as_text(wanted[key])
        place = text, seen[text]
        seen[text] += 1
        if place not in live:
            yield wanted
        elif inner := _of_union(node, before.get(place, {}), wanted, live[place], retains=retains):
            yield {**inner, key: wanted[key]}


def _by_key(items: Items, key: str) -> dict[tuple[str, int], Doc]:
    """Items by their key and their number among those with this key."""
    seen: Counter[str] = Counter()
    found: dict[tuple[str, int], Doc] = {}
    for item in items:
        if isinstance(item, dict) and key in item:
            text = codec.as_text(item[key])
            found[text, seen[text]] = item
            seen[text] += 1
    return found


def _of_scalars(name: str, original: Items, modified: Items, current: Items) -> Doc:
    there, wanted = {codec.as_text(one) for one in current}, {codec.as_text(one) for one in modified}
    added = [one for one in modified if codec.as_text(one) not in there]
    removed = [one for one in original if codec.as_text(one) not in wanted]
    patch: Doc = {}
    if added:
        patch[name] = added
    if removed:
        patch[f"{DELETE_FROM}/{name}"] = removed
    if patch or [codec.as_text(one) for one in current] != [codec.as_text(one) for one in modified]:
        patch[f"{ELEMENT_ORDER}/{name}"] = list(modified)
    return patch


def _keys(items: Items, key: str) -> list[object]:
    return [item[key] for item in items if isinstance(item, dict) and key in item]


def _field(node: Node, name: str) -> Field:
    if node.kind == "struct":
        return node.fields.get(name) or Field(name, _FREE)
    return Field(name, node.item if node.kind == "map" and node.item else _FREE)


def _same(left: object, right: object) -> bool:
    return left == right and codec.as_text(left) == codec.as_text(right)
