"""Valid objects of each kind, and one of each kind with all fields."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Tree = dict[str, Any]
_PREFIX = "#/components/schemas/"
_SAMPLES = {
    "date-time": "2030-01-01T00:00:00Z",
    "byte": "AAEC",
    "int-or-string": "50%",
    "int32": 3,
    "int64": 3,
    "double": 1.5,
}


def valid() -> dict[str, Tree]:
    """By collection. ``{namespace}`` is a placeholder for the namespace."""
    text = Path(__file__).with_name("objects.yaml").read_text()
    found: dict[str, Tree] = yaml.safe_load(text.replace("{certificate request}", _certificate_request()))
    return found


def _certificate_request() -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "u")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name)
    signed = request.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def filled(schemas: Mapping[str, Tree], name: str) -> Any:
    """An object in which each field has a value of its type, also if they are not consistent."""
    return _value(schemas, {"$ref": _PREFIX + name}, ())


def _value(schemas: Mapping[str, Tree], schema: Tree, above: tuple[str, ...]) -> Any:
    if "allOf" in schema:
        return _value(schemas, schema["allOf"][0], above)
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_PREFIX)
        return {} if above.count(name) > 1 else _value(schemas, schemas[name], (*above, name))
    if "properties" in schema:
        return {key: _value(schemas, part, above) for key, part in schema["properties"].items()}
    match schema.get("type"):
        case "array":
            return [_value(schemas, schema["items"], above)]
        case "object":
            return {"k": _value(schemas, schema.get("additionalProperties", {}), above)}
        case "boolean":
            return True
        case "integer" | "number":
            return _SAMPLES.get(schema.get("format", ""), 3)
        case _:
            return _SAMPLES.get(schema.get("format", ""), "1")


def places(doc: Any) -> list[tuple[str | int, ...]]:
    """The paths of all values in a document, itself included."""
    found: list[tuple[str | int, ...]] = []
    todo: list[tuple[tuple[str | int, ...], Any]] = [((), doc)]
    while todo:
        path, value = todo.pop()
        found.append(path)
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        if len(path) < 50:
            todo += [((*path, key), item) for key, item in items]
    return found
