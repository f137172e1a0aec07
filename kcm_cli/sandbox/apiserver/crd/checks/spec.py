"""A definition's spec in upstream's internal form: fields that are equal in all versions are outside of them.

So errors may name ``spec.validation`` for a ``spec.versions[0].schema`` of the document.

upstream: apiextensions-apiserver pkg/apis/apiextensions/v1/conversion.go, pkg/apis/apiextensions/types.go
"""

import msgspec

from kcm_cli.machinery import go_json
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.same import same
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import go_print

_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_FIELDS = (
    *("id", "$schema", "$ref", "description", "type", "nullable", "format", "title", "default"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern"),
    *("maxItems", "minItems", "uniqueItems", "multipleOf", "enum", "maxProperties", "minProperties", "required"),
    *("items", "allOf", "oneOf", "anyOf", "not", "properties", "additionalProperties", "patternProperties"),
    *("dependencies", "additionalItems", "definitions", "externalDocs", "example"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations"),
)
"""The fields of a schema, in the order of Go's struct."""
_BOOLEANS = (
    *("nullable", "exclusiveMaximum", "exclusiveMinimum", "uniqueItems"),
    *("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
)
_TEXTS = ("id", "$schema", "description", "type", "format", "title", "pattern")
_ZEROS = {**dict.fromkeys(_BOOLEANS, False), **dict.fromkeys(_TEXTS, "")}
"""The zero values of fields that are no pointers in Go."""


def _go_name(key: str) -> str:
    plain = key.removeprefix("$").replace("x-kubernetes-", "x-")
    return "ID" if key == "id" else "".join(f"{word[0].upper()}{word[1:]}" for word in plain.split("-"))


FIELD_NAMES = {key: _go_name(key) for key in _FIELDS}
"""The Go name of each field of a schema."""


class Version(msgspec.Struct, frozen=True):
    """A version without the shared fields. ``own``: its document."""

    name: str
    own: Tree
    schema: Doc | None
    subresources: Tree | None
    columns: list[Tree]
    selectable: list[Tree]


class Spec(msgspec.Struct, frozen=True):
    """See the module."""

    doc: Tree
    versions: list[Version]
    schema: Doc | None
    subresources: Tree | None
    columns: list[Tree]
    selectable: list[Tree]

    @property
    def schemas(self) -> list[Doc]:
        """The shared schema and those of versions."""
        found = [self.schema, *(version.schema for version in self.versions)]
        return [schema for schema in found if schema is not None]


def spec_of(doc: Tree) -> Spec:
    """The spec of a definition."""
    spec: Tree = doc["spec"]
    versions: list[Tree] = spec.get("versions") or []
    shared: dict[str, object] = {}
    for key in _SHARED:
        values = [version.get(key) or None if key != "subresources" else version.get(key) for version in versions]
        if values and all(same(value, values[0]) for value in values):
            shared[key] = values[0]
    made = [_version(version, set(shared)) for version in versions]
    top = _version({"name": "", **shared}, set())
    return Spec(spec, made, top.schema, top.subresources, top.columns, top.selectable)


def _version(version: Tree, hoisted: set[str]) -> Version:
    own = {key: value for key, value in version.items() if key not in hoisted}
    return Version(
        name=version.get("name") or "",
        own=own,
        schema=(own.get("schema") or {}).get("openAPIV3Schema"),
        subresources=own.get("subresources"),
        columns=own.get("additionalPrinterColumns") or [],
        selectable=own.get("selectableFields") or [],
    )


def go_versions(spec: Spec) -> list[object] | None:
    """The versions with the fields of the Go type, for errors."""
    if spec.doc.get("versions") is None:
        return None
    return [
        go_print.internal(
            "apiextensions.CustomResourceDefinitionVersion",
            {
                **version.own,
                "schema": None if version.schema is None else {"openAPIV3Schema": go_schema(version.schema)},
                "additionalPrinterColumns": version.columns or None,
                "selectableFields": version.selectable or None,
            },
        )
        for version in spec.versions
    ]


def go_schema(schema: Tree) -> Doc:
    """A schema with the fields of the Go type."""
    return {name: _go_value(key, schema.get(key, _ZEROS.get(key))) for key, name in FIELD_NAMES.items()}


def _go_value(key: str, value: object) -> object:
    if value is None:
        return None
    if key in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
        return [go_schema(sub) for sub in value]
    if key in ("properties", "patternProperties", "definitions") and isinstance(value, dict):
        return {name: go_schema(sub) for name, sub in sorted(value.items())}
    if key == "not" and isinstance(value, dict):
        return go_schema(value)
    if key == "items" and isinstance(value, dict):
        return {"Schema": go_schema(value), "JSONSchemas": None}
    if key in ("additionalProperties", "additionalItems"):
        nested = go_schema(value) if isinstance(value, dict) else None
        return {"Allows": nested is not None or bool(value), "Schema": nested}
    if key == "x-kubernetes-validations" and isinstance(value, list):
        return [go_rule(rule) for rule in value]
    return value


def go_rule(rule: Tree) -> object:
    """A rule with the fields of the Go type."""
    return go_print.internal("apiextensions.ValidationRule", rule)


def shown_go(value: object) -> str:
    """A value with Go's field names as JSON for errors, in the order of the fields and with Go's escapes."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{go_json.encode(key).decode()}:{shown_go(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(shown_go, value)) + "]"
    return go_json.encode(value).decode()
