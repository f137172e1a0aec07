"""The patch that client-side ``kubectl apply`` sends: what the new manifest adds or changes in the live object, and the
removal of what the previous manifest had and the new one has not.

Patches are those of kubectl, also where they are not what was meant: of several items with one merge key, as the ports
80/TCP and 80/UDP of a Service, the removal of one removes all.

upstream: apimachinery pkg/util/strategicpatch/patch.go#CreateThreeWayMergePatch, pkg/util/jsonmergepatch
"""

from collections import Counter
from collections.abc import Iterator

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.apply.strategic import (
    DELETE_FROM,
    DIRECTIVE,
    ELEMENT_ORDER,
    RETAIN_KEYS,
    element_type,
    key_of,
)
from kcm_cli.sandbox.apiserver.schema.model import Field, Node

_FREE = Node("any")
Items = list[object]


def strategic_patch(node: Node, original: Doc, modified: Doc, current: Doc) -> Doc:
    """A strategic merge patch for a built-in kind. Empty if nothing is to be changed. Changes no argument.

    original: the previous manifest, empty if unknown. modified: the new one. current: the live object. Raises
    StrategicError for a list that cannot be merged: with items of several types, or without their merge key.
    """
    return _of_maps(node, original, modified, current)


def merge_patch(original: Doc, modified: Doc, current: Doc) -> Doc:
    """The same as a JSON merge patch, for custom kinds: lists are replaced as a whole. A null that the previous
    manifest had, too, says nothing."""
    return _joined(_removals(original, modified), _changes(modified, current))


def _removals(original: Doc, modified: Doc) -> Doc:
    """The nulls for what the new manifest has not, or not any more."""
    found: Doc = {name: None for name in original if name not in modified}
    for name, wanted in modified.items():
        before = original.get(name)
        if wanted is None:
            if before is not None or name not in original:
                found[name] = None
        elif isinstance(wanted, dict) and (inner := _removals(before if isinstance(before, dict) else {}, wanted)):
            found[name] = inner
    return found


def _changes(modified: Doc, current: Doc) -> Doc:
    """What the new manifest adds or changes, without nulls."""
    found: Doc = {}
    for name, wanted in modified.items():
        live = current.get(name)
        if isinstance(wanted, dict):
            inner = _changes(wanted, live if isinstance(live, dict) else {})
            if inner or not (wanted or isinstance(live, dict)):
                found[name] = inner
        elif wanted is not None and (name not in current or not _same(wanted, live)):
            found[name] = wanted
    return found


def _joined(removals: Doc, changes: Doc) -> Doc:
    joined = {**removals, **changes}
    for name in removals.keys() & changes.keys():
        before, after = removals[name], changes[name]
        if isinstance(before, dict) and isinstance(after, dict):
            joined[name] = _joined(before, after)
    return joined


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
            if name not in current or live is not None:
                patch[name] = None
        elif name not in current or not _same(wanted, live):
            patch[name] = wanted
    return patch | {name: None for name in original if name not in modified}


def _of_union(node: Node, original: Doc, modified: Doc, current: Doc, *, retains: bool) -> Doc:
    """``retains``: keys that the new manifest does not have are removed, since only one member of a union is set."""
    patch = _of_maps(node, original, modified, current)
    kept = sorted(name for name, value in modified.items() if value is not None)
    if retains and kept and (patch or current.keys() - modified.keys()):
        patch[RETAIN_KEYS] = kept
    return patch


def _of_lists(field: Field, original: Items, modified: Items, current: Items) -> Doc:
    """The entries of a patch for a list that is merged: the items, and their order or those to remove."""
    if not (original or current):
        return {field.name: modified} if modified else {}
    key = field.merge_key
    if not key or not _are_maps(original, modified, current):
        return _of_scalars(field.name, original, modified, current)
    wanted, live = _keys(modified, key), _keys(current, key)
    gone = _surplus(_keys(original, key), wanted)
    node, ends = field.node.item or _FREE, {codec.as_text(one) for one in gone}
    items: Items = list(_items(node, key, (original, modified, current), ends, retains="retainKeys" in field.strategy))
    removed: Items = [{DIRECTIVE: "delete", key: one} for one in gone]
    if removed or _lose_fields(original, modified, key):
        items = _merged(items, key)
    if not (items or removed) and list(map(codec.as_text, live)) == list(map(codec.as_text, wanted)):
        return {}
    order: Items = [{key: one} for one in wanted]
    found: Doc = {f"{ELEMENT_ORDER}/{field.name}": order}
    return {**found, field.name: [*items, *removed]} if items or removed else found


def _are_maps(original: Items, modified: Items, current: Items) -> bool:
    """Whether a list that has a merge key has maps. Raises StrategicError if the items have several types."""
    return all(element_type(before, modified) is dict for before in (original, current) if before)


def _surplus(before: Items, wanted: Items) -> Items:
    """The keys that are there more often than wanted, each once."""
    left = Counter(map(codec.as_text, wanted))
    gone: dict[str, object] = {}
    for one in before:
        text = codec.as_text(one)
        left[text] -= 1
        if left[text] < 0:
            gone[text] = one
    return list(gone.values())


def _lose_fields(original: Items, modified: Items, key: str) -> bool:
    """Whether an item has fewer fields than before."""
    before = _by_key(original, key)
    pairs = (zip(before.get(text, ()), same, strict=False) for text, same in _by_key(modified, key).items())
    return any(known.keys() - wanted.keys() for some in pairs for known, wanted in some)


def _merged(items: Items, key: str) -> Items:
    """One item for each key: kubectl merges changes into removals, where there are any, and so into each other."""
    found: dict[str, Doc] = {}
    for item in items:
        assert isinstance(item, dict)
        text = codec.as_text(item[key])
        found[text] = _joined(found[text], item) if text in found else item
    return list(found.values())


def _items(node: Node, key: str, lists: tuple[Items, Items, Items], ends: set[str], *, retains: bool) -> Iterator[Doc]:
    """The items to add or change, of the original, modified and current lists. Those with the same key (two protocols
    of one port) are paired from the last one on, and are in this order in the patch. ends: the keys that are removed;
    their changes are merged into that, unless a field is removed as well."""
    original, modified, current = lists
    before, live = _by_key(original, key), _by_key(current, key)
    for text, same in _by_key(modified, key).items():
        earlier, lives = before.get(text, []), live.get(text, [])
        for number, wanted in enumerate(same):
            known = earlier[number] if number < len(earlier) else {}
            if text in ends and known.keys() <= wanted.keys():
                continue
            if number >= len(lives):
                yield wanted
                continue
            if inner := _of_union(node, known, wanted, lives[number], retains=retains):
                yield {**inner, key: wanted[key]}


def _by_key(items: Items, key: str) -> dict[str, list[Doc]]:
    """The items of each key, the last one first."""
    found: dict[str, list[Doc]] = {}
    for item in items:
        assert isinstance(item, dict)
        found.setdefault(codec.as_text(item[key]), []).insert(0, item)
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


def _keys(items: Items, key: str) -> Items:
    """The merge keys of a list of maps. Raises StrategicError where one is missing."""
    return [key_of(item, key) for item in items]


def _field(node: Node, name: str) -> Field:
    if node.kind == "struct":
        return node.fields.get(name) or Field(name, _FREE)
    return Field(name, node.item if node.kind == "map" and node.item else _FREE)


def _same(left: object, right: object) -> bool:
    return left == right and codec.as_text(left) == codec.as_text(right)
