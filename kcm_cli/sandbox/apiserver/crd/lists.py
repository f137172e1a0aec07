"""Duplicates in lists of type set and map.

upstream: apiextensions-apiserver pkg/apiserver/schema/listtype/validation.go
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import cast

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.same import same
from kcm_cli.sandbox.apiserver.crd.findings import invalid, shown
from kcm_cli.sandbox.apiserver.crd.structural import Structural
from kcm_cli.sandbox.apiserver.types import FieldError


def has_list_types(schema: Structural) -> bool:
    """Whether a schema has lists of type set or map."""
    return schema.list_type in ("set", "map") or any(map(has_list_types, schema.subschemas()))


def repeated(schema: Structural, value: object, path: str = "") -> list[FieldError]:
    """An error for each duplicate in lists of type set and map."""
    found = _own(schema, value, path) if isinstance(value, list) else []
    for sub, item, place in schema.parts(value, path):
        found += repeated(sub, item, place)
    return found


def unchanged(schema: Doc, new: object, old: object) -> bool:
    """Whether a value equals the old one. Items of lists of type map may be reordered. An object with fields that the
    schema (JSONSchemaProps) does not have counts as changed.

    upstream: apiserver pkg/cel/common/equality.go
    """
    if isinstance(new, dict) and isinstance(old, dict):
        return len(new) == len(old) and all(
            key in old and (field := _field(schema, key)) is not None and unchanged(field, item, old[key])
            for key, item in new.items()
        )
    if not isinstance(new, list) or not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return same(new, old)
    names = cast("list[str]", schema.get("x-kubernetes-list-map-keys") or [])
    items = cast("Doc", schema.get("items") or {})
    before = by_key(names, old)
    return len(new) == len(old) and all(
        (known := before.get(item_key(names, item))) is not None and unchanged(items, item, known) for item in new
    )


def item_key(names: Iterable[str], item: object) -> tuple[str, ...] | None:
    """The key of an item of a list of type map; None for an item that lacks one of its keys, which corresponds to no
    other. upstream: apiserver pkg/cel/common/maplist.go
    """
    values = [item.get(name) for name in names] if isinstance(item, dict) else []
    return tuple(map(repr, values)) if values and all(isinstance(one, str | int | float) for one in values) else None


def by_key(names: Sequence[str], items: list[object]) -> dict[tuple[str, ...] | None, object]:
    """The items of a list of type map, by key; of items with the same key the first."""
    found = {item_key(names, item): item for item in reversed(items)}
    found.pop(None, None)
    return found


def _field(schema: Doc, name: str) -> Doc | None:
    found = cast("Doc", schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def _own(schema: Structural, value: list[object], path: str) -> list[FieldError]:
    if schema.list_type == "set":
        return [_duplicate(f"{path}[{index}]", value[index]) for index in _again([identity(item) for item in value])]
    if schema.list_type != "map":
        return []
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys = [_of(schema.list_keys, item) for item in value]
    return [_duplicate(f"{path}[{index}]", keys[index]) for index in _again([identity(key) for key in keys])]


def _of(keys: Iterable[str], item: object) -> Doc:
    """The keys of an item of a list of type map."""
    return {key: item[key] for key in keys if isinstance(item, dict) and key in item}


def identity(value: object) -> Hashable:
    """A key that is equal for equal JSON values only: True, 1 and 1.0 differ."""
    return (type(value), codec.encode_sorted(value))


def _again(values: Sequence[Hashable]) -> list[int]:
    """The index of the second occurrence of each duplicate."""
    seen: dict[Hashable, int] = {}
    found: list[int] = []
    for index, value in enumerate(values):
        seen[value] = seen.get(value, 0) + 1
        if seen[value] == 2:
            found.append(index)
    return found


def _duplicate(path: str, value: object) -> FieldError:
    return FieldError("FieldValueDuplicate", path, f"Duplicate value: {shown(value)}")
