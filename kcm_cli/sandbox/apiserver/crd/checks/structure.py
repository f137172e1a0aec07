"""Whether a schema is structural: all fields have types, and junctors (anyOf, not, ...) only validate.

upstream: apiextensions-apiserver pkg/apiserver/schema/{validation,complete,convert}.go
"""

from collections.abc import Iterator

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.regexps import compile_go
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

ROOT, ITEM, FIELD = "at the root", "for specified array items", "for specified object fields"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
_REFUSED = frozenset([*_UNSUPPORTED, "x-kubernetes-preserve-unknown-fields"])
SUBSCHEMAS = frozenset(["items", "additionalProperties", "not", "allOf", "anyOf", "oneOf", "properties"])
_VALIDATING = frozenset(["allOf", "anyOf", "oneOf", "not", "pattern"])
_EMBEDDED = "x-kubernetes-embedded-resource"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_UNION = "x-kubernetes-int-or-string"
_FORBIDDEN = (
    ("type", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (_PRESERVE, "must be false to be structural"),
    (_EMBEDDED, "must be false to be structural"),
    (_UNION, "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)
_NO_UNION = f"must be false if {_UNION} is true"
_NO_METADATA = "must not specify anything other than name and generateName, but metadata is implicitly specified"


def unsupported(schema: Tree) -> str:
    """The error for a schema that cannot be converted to a structural one, otherwise empty."""
    for part in parts(schema):
        if _REFUSED.isdisjoint(part) and not isinstance(part.get("items"), list):
            continue
        for name in _UNSUPPORTED:
            if part.get(name):
                return f"OpenAPIV3Schema '{name.lstrip('$') if name == '$schema' else name}' is not supported"
        if isinstance(part.get("items"), list):
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
        if part.get(_PRESERVE) is False:
            return f"internal error: '{_PRESERVE}' must be true or undefined"
    return ""


def parts(schema: Tree) -> list[Tree]:
    """A schema and all schemas in it, parents first."""
    found: list[Tree] = []
    _collect(schema, found)
    return found


def _collect(schema: Tree, found: list[Tree]) -> None:
    found.append(schema)
    if SUBSCHEMAS.isdisjoint(schema):
        return
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            _collect(schema[key], found)
    for key in ("allOf", "anyOf", "oneOf"):
        for sub in schema.get(key) or ():
            _collect(sub, found)
    for sub in (schema.get("properties") or {}).values():
        _collect(sub, found)


def check_structure(schema: Tree, path: str) -> list[FieldError]:
    """The errors of a schema that is not structural, sorted."""
    found = list(_completeness(schema, schema, path, path))
    _invariants(schema, ROOT, path, found)
    return sorted(found, key=lambda error: f"{error.field}: {error.message}")


def _invariants(schema: Tree, level: str, path: str, found: list[FieldError]) -> None:
    """Add the errors of a schema and of those in it."""
    type_, items, additional = schema.get("type") or "", schema.get("items"), schema.get("additionalProperties")
    properties: Tree = schema.get("properties") or {}
    embedded = schema.get(_EMBEDDED)
    if type_ == "array" and items is None:
        found.append(errors.required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        _invariants(items, ITEM, f"{path}.items", found)
    for name, sub in properties.items():
        _invariants(sub, FIELD, f"{path}.properties[{name}]", found)
    if additional is not None:
        if level == ROOT:
            found.append(errors.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, dict):
            _invariants(additional, FIELD, f"{path}.additionalProperties", found)
    if not _VALIDATING.isdisjoint(schema):
        any_of = schema.get("anyOf") == _INT_OR_STRING
        all_of = bool(schema.get("allOf")) and schema["allOf"][0].get("anyOf") == _INT_OR_STRING
        found += _values(schema, level, path, skip_any=any_of, skip_first_all=all_of)
    if level == ROOT or embedded or not type_:
        found += _type(schema, type_, level, path)
    if level == ROOT or embedded or "metadata" in properties:
        found += _meta(properties, level, path, checked=level == ROOT or bool(embedded))
    if schema.get(_UNION):
        found += [invalid(f"{path}.{key}", True, _NO_UNION) for key in (_PRESERVE, _EMBEDDED) if schema.get(key)]


def _type(schema: Tree, type_: str, level: str, path: str) -> Iterator[FieldError]:
    embedded = schema.get(_EMBEDDED)
    if embedded and type_ != "object":
        detail = f"must be object if {_EMBEDDED} is true"
        yield invalid(f"{path}.type", type_, detail) if type_ else errors.required(f"{path}.type", detail)
    elif not type_ and not schema.get(_UNION) and not schema.get(_PRESERVE):
        yield errors.required(f"{path}.type", f"must not be empty {level}")
    if embedded and schema.get("additionalProperties") is not None:
        yield errors.forbidden(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set")
    if level == ROOT and type_ and type_ != "object":
        yield invalid(f"{path}.type", type_, "must be object at the root")
    if embedded and not schema.get(_PRESERVE) and not schema.get("properties"):
        detail = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield errors.required(f"{path}.properties", detail)


def _meta(properties: Tree, level: str, path: str, *, checked: bool) -> Iterator[FieldError]:
    for name in ("kind", "apiVersion"):
        if checked and name in properties and properties[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string")
    metadata: Tree | None = properties.get("metadata")
    if metadata is None:
        return
    if checked and metadata.get("type") != "object":
        yield invalid(f"{path}.properties[metadata].type", metadata.get("type") or "", "must be object")
    if level == ROOT:
        known = metadata.get("properties") or {}
        rest = {key for key, value in metadata.items() if value} - {"type", "default", "required"}
        if known and known.keys() <= {"name", "generateName"}:
            rest.discard("properties")
        if rest or metadata.get("required"):
            yield errors.forbidden(f"{path}.properties[metadata]", _NO_METADATA)


def _values(schema: Tree, level: str, path: str, *, skip_any: bool, skip_first_all: bool) -> Iterator[FieldError]:
    """Errors in value validations: schemas in junctors may only validate."""
    if not skip_any:
        for index, sub in enumerate(schema.get("anyOf") or ()):
            yield from _nested(sub, level, f"{path}.anyOf[{index}]")
    for index, sub in enumerate(schema.get("allOf") or ()):
        yield from _nested(sub, level, f"{path}.allOf[{index}]", skip_any=skip_first_all and index == 0)
    for index, sub in enumerate(schema.get("oneOf") or ()):
        yield from _nested(sub, level, f"{path}.oneOf[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], level, f"{path}.not")
    if pattern := schema.get("pattern"):
        try:
            compile_go(pattern)
        except FormatError as error:
            yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")


def _nested(schema: Tree, level: str, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    yield from _values(schema, level, path, skip_any=skip_any, skip_first_all=False)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], level, f"{path}.items")
    for name, sub in (schema.get("properties") or {}).items():
        yield from _nested(sub, FIELD, f"{path}.properties[{name}]")
    for key, detail in _FORBIDDEN:
        value = schema.get(key)
        if value if key != "default" else value is not None:
            yield errors.forbidden(f"{path}.{key}", detail)
    if schema.get("additionalProperties"):
        yield errors.forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    if "metadata" in (schema.get("properties") or {}):
        yield errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(rules: Tree, schema: Tree | None, path: str, said: str) -> Iterator[FieldError]:
    """Errors for fields that are validated in junctors but not declared outside."""
    if isinstance(rules.get("not"), dict):
        yield from _nested_completeness(rules["not"], schema, path, f"{said}.not")
    for key in ("allOf", "anyOf", "oneOf"):
        for index, sub in enumerate(rules.get(key) or ()):
            yield from _nested_completeness(sub, schema, path, f"{said}.{key}[{index}]")


def _nested_completeness(rules: Tree, schema: Tree | None, path: str, said: str) -> Iterator[FieldError]:
    if schema is None:
        yield errors.required(path, f"because it is defined in {said}")
        return
    yield from _completeness(rules, schema, path, said)
    items = schema.get("items")
    if isinstance(rules.get("items"), dict):
        below = items if isinstance(items, dict) else None
        yield from _nested_completeness(rules["items"], below, f"{path}.items", f"{said}.items")
    for name, sub in (rules.get("properties") or {}).items():
        where = f"properties[{name}]"
        known = (schema.get("properties") or {}).get(name)
        yield from _nested_completeness(sub, known, f"{path}.{where}", f"{said}.{where}")
