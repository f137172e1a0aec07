"""Types from schemas as OpenAPI publishes them, in the form of ``data/types.json.gz`` (see ``load``)."""

from collections.abc import Iterator, Mapping
from typing import Any

Json = dict[str, Any]
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
SPECIAL: Mapping[str, object] = {
    META + "Time": "time",
    META + "MicroTime": "microtime",
    META + "Duration": "string",
    META + "FieldsV1": "object",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intorstr",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "raw",
    _EXTENSIONS + "JSON": "any",
    _EXTENSIONS + "JSONSchemaPropsOrBool": {"or": f"#{_EXTENSIONS}JSONSchemaProps", "else": "boolean"},
    _EXTENSIONS + "JSONSchemaPropsOrArray": {"or": f"#{_EXTENSIONS}JSONSchemaProps", "else": "list"},
    _EXTENSIONS + "JSONSchemaPropsOrStringArray": {"or": f"#{_EXTENSIONS}JSONSchemaProps", "else": "strings"},
}
_FORMATS = {"int32": "int32", "int64": "int64", "byte": "bytes", "double": "number"}
_KEYS = {
    "lt": "x-kubernetes-list-type",
    "lk": "x-kubernetes-list-map-keys",
    "ps": "x-kubernetes-patch-strategy",
    "pk": "x-kubernetes-patch-merge-key",
    "d": "default",
}


def types_of(name: str, schema: Json) -> Iterator[tuple[str, Json]]:
    """The type of a definition, and those of objects in it, each with its name.

    A type is a struct: p = properties, r = required, m = 1 where the whole is one value (map type atomic). A property
    is a bare type, or {t: type, lt/lk: list type and keys, m: 1 atomic or 0 granular, ps/pk: patch strategy and merge
    key}.
    """
    inner: dict[str, Json] = {}
    properties = schema.get("properties", {})
    out: Json = {"p": {field: _property(prop, f"{name}.{field}", inner) for field, prop in properties.items()}}
    if schema.get("required"):
        out["r"] = schema["required"]
    if schema.get("x-kubernetes-map-type") == "atomic":
        out["m"] = 1
    yield name, out
    for each, found in inner.items():
        yield from types_of(each, found)


def _property(prop: Json, name: str, inner: dict[str, Json]) -> object:
    out: Json = {"t": _bare(prop, name, inner)}
    out |= {key: prop[said] for key, said in _KEYS.items() if said in prop}
    if "x-kubernetes-map-type" in prop:
        out["m"] = int(prop["x-kubernetes-map-type"] == "atomic")
    return out["t"] if len(out) == 1 else out


def _bare(prop: Json, name: str, inner: dict[str, Json]) -> object:
    """``string``, ``int32`` ..., ``#definition``, {"list": item}, {"map": value} or {"or": a struct, "else": what it is
    if it is no object}. ``inner``: takes the schemas of objects with properties."""
    ref = prop.get("$ref")
    if isinstance(ref, str):
        of = ref.rpartition("/")[2]
        return SPECIAL.get(of, "#" + of)
    kind = prop.get("type")
    if isinstance(kind, list):
        kind = next(k for k in kind if k != "null")
    if kind == "array":
        return {"list": _property(prop["items"], name, inner)}
    if kind == "object":
        if prop.get("properties"):
            inner[name] = prop
            return "#" + name
        values = prop.get("additionalProperties")
        return {"map": _property(values, name, inner)} if isinstance(values, dict) else "object"
    if kind in ("string", "integer", "number"):
        fallback = {"string": "string", "integer": "int64", "number": "number"}[kind]
        return _FORMATS.get(str(prop.get("format")), fallback)
    return kind or "any"
