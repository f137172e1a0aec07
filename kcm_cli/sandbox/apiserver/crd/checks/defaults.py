"""Validation of the defaults in a schema.

upstream: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go
"""

from collections.abc import Iterator

from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.same import same
from kcm_cli.machinery.whole_floats import widen
from kcm_cli.sandbox.apiserver.crd import shape
from kcm_cli.sandbox.apiserver.crd.checks.expressions import problem_of
from kcm_cli.sandbox.apiserver.crd.embedded import validate_embedded, validate_object
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.rules import rules_of
from kcm_cli.sandbox.apiserver.crd.structural import META_FIELDS, NO_DEFAULT, Structural, structural
from kcm_cli.sandbox.apiserver.crd.values import Checker
from kcm_cli.sandbox.apiserver.types import FieldError, Tree


def check_defaults(schema: Tree, path: str, *, pruned: bool) -> list[FieldError]:
    """The errors of defaults. ``pruned``: they must not have unknown fields."""
    found: list[FieldError] = []
    _check(schema, path, found, pruned=pruned, root=True, inside=False)
    return found


def _check(schema: Tree, path: str, found: list[FieldError], *, pruned: bool, root: bool, inside: bool) -> None:
    """``inside``: the schema is a part of metadata."""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    inside = inside and not embedded
    if schema.get("default") is not None:
        found += _check_value(structural(schema), f"{path}.default", pruned=pruned and not inside, root=root)
    items, properties = schema.get("items"), schema.get("properties")
    if isinstance(items, dict):
        _check(items, f"{path}.items", found, pruned=pruned, root=False, inside=inside)
    for name, sub in sorted(properties.items()) if properties else ():
        meta = inside or ((embedded or root) and name in META_FIELDS)
        _check(sub, f"{path}.properties[{name}]", found, pruned=pruned, root=False, inside=meta)


def _check_value(schema: Structural, path: str, *, pruned: bool, root: bool) -> Iterator[FieldError]:
    value = widen(copy(schema.default))
    if pruned and not is_pruned(schema):
        yield invalid(path, value, "must not have unknown fields")
    found = validate_object(value, path) if root and isinstance(value, dict) else []
    found += validate_embedded(schema, value, path)
    found = found or Checker(schema.raw, unions=False).check(value).below(path)
    if not found and (rules := rules_of(schema, problem_of)) is not None:
        found = rules.check(value, value, path) or rules.check(value, None, path)
    yield from found


def is_pruned(schema: Structural) -> bool:
    """Whether a default has no unknown fields."""
    fresh = copy(schema.default)
    shape.prune(schema, fresh, root=schema.embedded)
    return same(fresh, schema.default)


def unpruned(schema: Structural) -> bool:
    """Whether any default in a schema has unknown fields."""
    own = schema.default is not NO_DEFAULT and not is_pruned(schema)
    return own or any(map(unpruned, schema.subschemas()))
