"""Validation of a definition's schemas.

upstream: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go
#ValidateCustomResourceDefinitionOpenAPISchema
"""

import re
from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.crd.checks.costs import Costs, limit_below
from kcm_cli.sandbox.apiserver.crd.checks.defaults import check_defaults
from kcm_cli.sandbox.apiserver.crd.checks.expressions import check_rules
from kcm_cli.sandbox.apiserver.crd.checks.spec import FIELD_NAMES, go_schema, shown_go
from kcm_cli.sandbox.apiserver.crd.checks.structure import SUBSCHEMAS, check_structure, unsupported
from kcm_cli.sandbox.apiserver.crd.field_paths import resolve
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import META_FIELDS, structural
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_REPLACED = ("additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LIST, _KEYS, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"
_RULES = "x-kubernetes-validations"
_SHOWN_KEYS = 100_000
"""Limits the errors about a list's keys: each error after the first prints all keys, and this many characters do."""
_WITH_STATUS = "at the root of the schema if the status subresource is enabled"
_NOTABLE = frozenset(
    ["default", "id", "uniqueItems", *_REPLACED, "x-kubernetes-embedded-resource", _LIST, _KEYS, _MAP, _RULES]
    + ["x-kubernetes-preserve-unknown-fields"]
)
"""Keys that need checks. Most schemas have none of them."""
_NEW_LINE = re.compile(r"[\n\r]+")


class Strictness(msgspec.Struct, frozen=True):
    """The checks that apply. An update skips those that the old definition does not pass."""

    structural: bool = True
    types: bool = True
    pruned: bool = True
    atomic_sets: bool = True
    map_keys: bool = True


class _Place(msgspec.Struct, frozen=True):
    """A place in a schema. no_default: why defaults are forbidden (None: allowed). loose: path of the outermost list
    or map whose items cannot be correlated with old ones. costs: of the rules; None if rules are not checked. limit:
    the maximum number of values here, None if unlimited.
    """

    strict: Strictness
    no_default: str | None = None
    inside_meta: bool = False
    loose: str = ""
    costs: Costs | None = None
    limit: int | None = 1


class _Found(msgspec.Struct):
    """The errors of a schema and of its rules."""

    schema: list[FieldError] = msgspec.field(default_factory=list)
    rules: list[FieldError] = msgspec.field(default_factory=list)


def check_validation(schema: Tree, path: str, strict: Strictness, *, status: bool) -> list[FieldError]:
    """The errors of a schema (``path``: of openAPIV3Schema). ``status``: status is a subresource."""
    found: list[FieldError] = []
    if status:
        found += _root_with_status(schema, path)
    if schema.get("nullable"):
        found.append(errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    costs: Costs | None = None
    unreadable = unsupported(schema) if strict.structural else ""
    if strict.structural and not unreadable:
        problems = check_structure(schema, path)
        if not problems:
            problems = check_defaults(schema, path, pruned=strict.pruned)
        found += problems
        costs = None if problems else Costs()
    below = _Found()
    _check(schema, path, _Place(strict, costs=costs), below, root=True)
    found += below.schema + below.rules
    if not found and unreadable:
        found.append(invalid(path, "", unreadable))
    if costs is not None:
        found += costs.total(path)
    return found


def _root_with_status(schema: Tree, path: str) -> Iterator[FieldError]:
    for key, name in FIELD_NAMES.items():
        if not schema.get(key):
            continue
        if key == "type":
            if schema[key] != "object":
                yield invalid(f"{path}.type", schema[key], f'only "object" is allowed as the type {_WITH_STATUS}')
                return
        elif name not in _AT_ROOT.split():
            detail = (
                f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            text = f"Invalid value: {shown_go(go_schema(schema))}: {detail}"
            yield FieldError("FieldValueInvalid", path, text)
            return


def _check(schema: Tree, path: str, place: _Place, found: _Found, *, root: bool = False) -> None:
    """Add the errors of a schema and of those in it."""
    before = len(found.schema)
    notable = not _NOTABLE.isdisjoint(schema)
    if notable or schema.get("type") not in TYPES or isinstance(schema.get("items"), list):
        found.schema += _plain(schema, path, place)
    if not SUBSCHEMAS.isdisjoint(schema):
        limit = limit_below(schema, place.limit)
        _below(schema, path, place if limit == place.limit else replace(place, limit=limit), found, root=root)
    if not notable:
        return
    found.schema += _extensions(schema, path, place)
    rules: list[Tree] = schema.get(_RULES) or []
    for index, rule in enumerate(rules):
        found.schema += _rule(rule, schema, f"{path}.{_RULES}[{index}]")
    if rules and len(found.schema) == before and place.costs is not None:
        top = root or bool(schema.get("x-kubernetes-embedded-resource"))
        found.rules += check_rules(schema, f"{path}.{_RULES}", place.loose, place.costs, place.limit, root=top)


def _plain(schema: Tree, path: str, place: _Place) -> Iterator[FieldError]:
    type_ = schema.get("type") or ""
    if place.strict.types and type_ and type_ not in TYPES:
        yield errors.not_supported(f"{path}.type", type_, TYPES)
    if schema.get("default") is not None and place.no_default is not None:
        yield errors.forbidden(f"{path}.default", f"must not be set {place.no_default}".strip())
    if schema.get("id"):
        yield errors.forbidden(f"{path}.id", "id is not supported")
    for key in _REPLACED:
        if schema.get(key) or (key in ("additionalItems", "dependencies", "$ref") and schema.get(key) is not None):
            yield errors.forbidden(f"{path}.{key}", f"{key} is not supported")
    if type_ == "null":
        yield errors.forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    embedded = "x-kubernetes-embedded-resource"
    if place.inside_meta and schema.get(embedded):
        yield errors.forbidden(f"{path}.{embedded}", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield errors.forbidden(f"{path}.uniqueItems", detail)


def _below(schema: Tree, path: str, place: _Place, found: _Found, *, root: bool) -> None:
    _values(schema, path, place, found)
    for name, sub in sorted((schema.get("properties") or {}).items()):
        inner = place
        if schema.get(_MAP) not in (None, "granular", "atomic"):
            inner = replace(inner, loose=inner.loose or path)
        if (root or schema.get("x-kubernetes-embedded-resource")) and name in META_FIELDS:
            why = f"in top-level {name}" if root else inner.no_default
            inner = replace(inner, inside_meta=True, no_default=why)
        _check(sub, f"{path}.properties[{name}]", inner, found)
    if isinstance(schema.get("not"), dict):
        _check(schema["not"], f"{path}.not", replace(place, costs=None), found)
    for key in ("allOf", "oneOf", "anyOf"):
        for index, sub in enumerate(schema.get(key) or ()):
            _check(sub, f"{path}.{key}[{index}]", replace(place, costs=None), found)
    items = schema.get("items")
    if isinstance(items, dict):
        inner = place if place.loose or schema.get(_LIST) == "map" else replace(place, loose=path)
        _check(items, f"{path}.items", inner, found)


def _values(schema: Tree, path: str, place: _Place, found: _Found) -> None:
    additional = schema.get("additionalProperties")
    if additional is None:
        return
    if schema.get("properties") and additional is not True:
        detail = "additionalProperties and properties are mutual exclusive"
        found.schema.append(errors.forbidden(f"{path}.additionalProperties", detail))
    if isinstance(additional, dict):
        inner = place
        if place.inside_meta:
            inner = replace(place, no_default="inside additionalProperties applying to object metadata")
        _check(additional, f"{path}.additionalProperties", inner, found)


def _extensions(schema: Tree, path: str, place: _Place) -> Iterator[FieldError]:
    keep = "x-kubernetes-preserve-unknown-fields"
    if schema.get(keep) is False:
        yield invalid(f"{path}.{keep}", False, "must be true or undefined")
    map_type, list_type = schema.get(_MAP), schema.get(_LIST)
    if map_type is not None:
        yield from _of_type(schema, "object", _MAP, path)
        if map_type not in ("atomic", "granular"):
            yield errors.not_supported(f"{path}.{_MAP}", map_type, ["atomic", "granular"])
    items = schema.get("items")
    if list_type is not None and schema.get("type") != "array":
        yield from _of_type(schema, "array", _LIST, path)
    elif place.strict.atomic_sets and list_type == "set" and isinstance(items, dict):
        yield from _set_items(items, path)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield errors.not_supported(f"{path}.{_LIST}", list_type, ["atomic", "set", "map"])
    if schema.get(_KEYS) and list_type != "map":
        detail = f"must be map if {_KEYS} is non-empty"
        where = f"{path}.{_LIST}"
        yield errors.required(where, detail) if list_type is None else invalid(where, list_type, detail)
    if list_type == "map":
        yield from _map_items(schema, path)
    if place.strict.map_keys:
        yield from loose_keys(schema, path)


def _of_type(schema: Tree, type_: str, extension: str, path: str) -> Iterator[FieldError]:
    given, detail = schema.get("type") or "", f"must be {type_} if {extension} is specified"
    if not given:
        yield errors.required(f"{path}.type", detail)
    elif given != type_:
        yield invalid(f"{path}.type", given, detail)


def _set_items(items: Tree, path: str) -> Iterator[FieldError]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    own = items.get(_LIST)
    if items.get("type") == "array" and own not in (None, "atomic"):
        yield invalid(f"{path}.items.{_LIST}", own, detail)
    elif items.get("type") == "object" and items.get(_MAP) != "atomic":
        yield invalid(f"{path}.items.{_MAP}", own, detail)


def has_loose_sets(schema: Tree) -> bool:
    """Whether the items of a set are not atomic."""
    items = schema.get("items")
    return schema.get(_LIST) == "set" and isinstance(items, dict) and any(_set_items(items, ""))


def _map_items(schema: Tree, path: str) -> Iterator[FieldError]:
    keys: list[str] = schema.get(_KEYS) or []
    items = schema.get("items")
    if not keys:
        yield errors.required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    if items is None:
        yield errors.required(f"{path}.items", f"must have a schema if {_LIST} is map")
    if not isinstance(items, dict):
        return
    type_ = items.get("type") or ""
    if type_ != "object":
        yield invalid(f"{path}.items.type", type_, f"must be object if parent array's {_LIST} is map")
        return
    unique = set[str]()
    left = 1 + _SHOWN_KEYS // (1 + sum(len(key) for key in keys))
    for key in keys:
        found = (items.get("properties") or {}).get(key)
        wrong: list[str] = []
        if found is None:
            wrong.append("entries must all be names of item properties")
        elif found.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {_LIST} is map"
            yield invalid(f"{path}.items.properties[{key}].type", type_, detail)
        if key in unique:
            wrong.append("must not contain duplicate entries")
        unique.add(key)
        for detail in wrong[:left]:
            yield invalid(f"{path}.{_KEYS}", keys, detail)
        left -= len(wrong[:left])


def loose_keys(schema: Tree, path: str) -> Iterator[FieldError]:
    """Errors for items and keys of sets and maps that may be missing or null."""
    items, list_type = schema.get("items"), schema.get(_LIST)
    if not isinstance(items, dict) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        yield errors.forbidden(f"{path}.items.nullable", f"cannot be nullable when {_LIST} is {list_type}")
    required = frozenset(items.get("required") or ())
    for key in (schema.get(_KEYS) or ()) if list_type == "map" else ():
        found = (items.get("properties") or {}).get(key)
        where, said = f"{path}.items.properties[{key}]", f"this property is in {_KEYS}, so it"
        if found is None:
            continue
        if key not in required and found.get("default") is None:
            yield errors.required(f"{where}.default", f"{said} must have a default or be a required property")
        if found.get("nullable"):
            yield errors.forbidden(f"{where}.nullable", f"{said} cannot be nullable")


def _rule(rule: Tree, schema: Tree, path: str) -> Iterator[FieldError]:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        yield errors.required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _NEW_LINE.search(message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _NEW_LINE.search(text.strip()) and not message.strip():
        yield errors.required(f"{path}.message", "message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        detail = "messageExpression must be non-empty if specified"
        yield errors.required(f"{path}.messageExpression", detail)
    if (reason := rule.get("reason")) is not None and reason not in _REASONS:
        yield errors.not_supported(f"{path}.reason", reason, _REASONS)
    yield from _field_path(rule.get("fieldPath") or "", schema, f"{path}.fieldPath")


def _field_path(text: str, schema: Tree, path: str) -> Iterator[FieldError]:
    if not text:
        return
    if not text.strip():
        yield invalid(path, text, "must be non-empty if specified")
    if _NEW_LINE.search(text):
        yield invalid(path, text, "must not contain line breaks")
    if unsupported(schema):
        return
    try:
        resolve(text, structural(schema))
    except FormatError:
        yield invalid(path, text, "must be a valid path")
