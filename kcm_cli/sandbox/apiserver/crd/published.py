"""Schemas of custom kinds in OpenAPI.

upstream: apiextensions-apiserver pkg/controller/openapi/{builder/builder.go,v2/conversion.go}
"""

from typing import Any

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.crd.structural import Structural
from kcm_cli.sandbox.apiserver.schema import Target

_META: Doc = {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_TEXT: Doc = {"type": "string"}
_NOT_IN_V2 = ("allOf", "anyOf", "default", "oneOf", "not")
_INT_OR_STRING: list[Doc] = [{"type": "integer"}, {"type": "string"}]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"


def schema_of(schema: Structural, target: Target, *, old: bool) -> Doc:
    """The definition of a kind, with references in the form of v2. ``old``: without what v2 does not have."""
    made: dict[str, Any]
    if old and schema.preserve:
        made = {"type": "object"}
    else:
        made = _plain(schema.raw) if old else _full(schema.raw)
        made["properties"] = {**(made.get("properties") or {}), "apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}
    kind = {"group": target.group, "kind": target.kind, "version": target.version}
    return {**made, "x-kubernetes-group-version-kind": [kind]}


def _below(raw: dict[str, Any], convert: Any) -> dict[str, Any]:
    made = {key: value for key, value in raw.items() if value is not None}
    if raw.get("properties"):
        made["properties"] = {name: convert(sub) for name, sub in raw["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(raw.get(key), dict):
            made[key] = convert(raw[key])
    return made


def _embedded(made: dict[str, Any]) -> dict[str, Any]:
    if made.get(_EMBEDDED):
        made["properties"] = {**(made.get("properties") or {}), "apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}
        required = made.get("required") or []
        made["required"] = [*required, *(key for key in ("kind", "apiVersion") if key not in required)]
    return made


def _full(raw: dict[str, Any]) -> dict[str, Any]:
    made = _below(raw, _full)
    if made.get("x-kubernetes-int-or-string") and "anyOf" not in made:
        made["anyOf"] = _INT_OR_STRING
    return _embedded(made)


def _plain(raw: dict[str, Any]) -> dict[str, Any]:
    made = {key: value for key, value in _below(raw, _plain).items() if key not in _NOT_IN_V2}
    if made.pop("nullable", False):
        for key in ("type", "items", "properties"):
            made.pop(key, None)
    if made.get(_PRESERVE):
        made.pop("items", None)
        made.pop("properties", None)
        if made.get("type") == "object":
            del made["type"]
    if made.get("type") == "array" and "items" not in made:
        del made["type"]
    nullable = [name for name, sub in (raw.get("properties") or {}).items() if sub.get("nullable")]
    values = raw.get("additionalProperties")
    required = [name for name in made.get("required") or () if name not in nullable]
    if isinstance(values, dict) and values.get("nullable"):
        required = []
    made.pop("required", None)
    if required:
        made["required"] = required
    return made if made.get(_PRESERVE) else _embedded(made)
