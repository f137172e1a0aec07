"""Pruning and defaulting by structural schemas.

All functions work in place. At the root they leave apiVersion, kind and metadata unchanged.

upstream: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting}
"""

from typing import cast

from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.patches import copy
from kcm_cli.sandbox.apiserver.crd.structural import META_FIELDS, NO_DEFAULT, Structural


def prune(schema: Structural | None, value: object, *, root: bool = False) -> list[str]:
    """Remove fields that the schema does not have. Returns their paths, sorted."""
    pruned: list[str] = []
    _prune(schema, value, "", pruned, root=root)
    return sorted(pruned)


def _prune(
    schema: Structural | None, value: object, path: str, pruned: list[str], *, root: bool = False, keep: bool = False
) -> None:
    """``keep``: the list around this item preserves unknown fields."""
    keep = keep or (schema is not None and schema.preserve)
    if isinstance(value, list):
        items = schema.items if schema is not None else None
        if keep and items is None:
            return
        for index, item in enumerate(value):
            _prune(items, item, f"{path}[{index}]", pruned, keep=keep)
    elif isinstance(value, dict):
        _prune_object(schema, value, path, pruned, root=root, keep=keep)


def _prune_object(
    schema: Structural | None, value: Doc, path: str, pruned: list[str], *, root: bool, keep: bool
) -> None:
    for key in list(value):
        if schema is not None and (schema.embedded or root) and key in META_FIELDS:
            continue
        below = f"{path}.{key}" if path else key
        if schema is not None and key in schema.properties:
            _prune(schema.properties[key], value[key], below, pruned)
        elif schema is not None and schema.additional is not None:
            _prune(schema.values, value[key], below, pruned)
        elif not keep:
            if key not in META_FIELDS or path:
                pruned.append(below)
            del value[key]


def has_bare(schema: Structural, *, root: bool = False) -> bool:
    """Whether a schema has objects without properties, for which server-side apply accepts any field."""
    named = [sub for name, sub in schema.properties.items() if not root or name not in META_FIELDS]
    bare = schema.type == "object" and not schema.properties and schema.additional is None and not schema.preserve
    return bare or any(has_bare(sub) for sub in [*named, schema.items, schema.values] if sub is not None)


def drop_nulls(schema: Structural | None, value: object, *, typed: bool = True) -> None:
    """Remove nulls that the schema neither allows nor replaces by a default. typed: also of fields with a type."""
    if isinstance(value, dict):
        for key in list(value):
            sub = schema.child(key) if schema is not None else None
            item = value[key]
            if item is None and sub is not None and not sub.nullable and sub.default is NO_DEFAULT:
                if typed or not (sub.type or sub.int_or_string):
                    del value[key]
            else:
                drop_nulls(sub, item, typed=typed)
    elif isinstance(value, list):
        for item in value:
            drop_nulls(schema.items if schema is not None else None, item, typed=typed)


def fill(schema: Structural | None, value: object) -> None:
    """Set defaults for fields that are missing, or null and not nullable."""
    if schema is None:
        return
    if isinstance(value, dict):
        for name, sub in schema.properties.items():
            if sub.default is not NO_DEFAULT and _missing(sub, value, name):
                value[name] = copy(sub.default)
        values = schema.values
        for key, item in value.items():
            if key in schema.properties:
                fill(schema.properties[key], item)
            elif values is not None:
                if item is None and not values.nullable:
                    value[key] = copy(values.default) if values.default is not NO_DEFAULT else None
                fill(values, value[key])
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        for index, item in enumerate(cast("list[object]", value)):
            if item is None and not items.nullable and items.default is not NO_DEFAULT:
                value[index] = copy(items.default)
            fill(items, value[index])


def _missing(schema: Structural, value: Doc, name: str) -> bool:
    return name not in value or (value[name] is None and not schema.nullable)
