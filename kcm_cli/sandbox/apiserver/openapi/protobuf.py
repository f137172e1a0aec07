"""OpenAPI 2.0 in gnostic's protobuf form, the only one that client-go requests.

The tables have a message per line and its continuations, with its fields: JSON key, number and type. A type is ``s``
(string), ``b`` (boolean), ``i`` (integer), ``d`` (double), ``any`` (a YAML string), the name of a message, or one of
these in brackets (repeated).

upstream: github.com/google/gnostic-models openapiv2/OpenAPIv2.proto
"""

from collections.abc import Callable, Mapping

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.protowire import doubled, numbered, packed

Table = Mapping[str, tuple[int, str]]

_EXTENSIONS = "x-"
_TABLES = """
Document swagger:1:s info:2:Info paths:8:Paths definitions:9:Definitions parameters:10:Parameters
  security:12:[Requirement] securityDefinitions:13:Securities x-:16:[any]
Info title:1:s version:2:s x-:7:[any]
PathItem get:2:Operation put:3:Operation post:4:Operation delete:5:Operation options:6:Operation head:7:Operation
  patch:8:Operation parameters:9:[Parameter]
Operation tags:1:[s] description:3:s operationId:5:s produces:6:[s] consumes:7:[s] parameters:8:[Parameter]
  responses:9:Responses schemes:10:[s] deprecated:11:b x-:13:[any]
Body description:1:s name:2:s in:3:s required:4:b schema:5:Schema
Query required:1:b in:2:s description:3:s name:4:s type:6:s uniqueItems:20:b
Path required:1:b in:2:s description:3:s name:4:s type:5:s uniqueItems:19:b
Response description:1:s schema:2:Items
Schema $ref:1:s format:2:s title:3:s description:4:s default:5:any multipleOf:6:d maximum:7:d exclusiveMaximum:8:b
  minimum:9:d exclusiveMinimum:10:b maxLength:11:i minLength:12:i pattern:13:s maxItems:14:i minItems:15:i
  uniqueItems:16:b maxProperties:17:i minProperties:18:i required:19:[s] enum:20:[any]
  additionalProperties:21:Additional type:22:Type items:23:Items allOf:24:[Schema] properties:25:Definitions
  discriminator:26:s readOnly:27:b externalDocs:29:ExternalDocs example:30:any x-:31:[any]
ExternalDocs description:1:s url:2:s
ApiKey type:1:s name:2:s in:3:s description:4:s
"""


def _table(fields: list[str]) -> Table:
    parts = [field.split(":") for field in fields]
    return {key: (int(number), type_) for key, number, type_ in parts}


_MESSAGES: Mapping[str, Table] = {
    line.split()[0]: _table(line.split()[1:]) for line in _TABLES.strip().replace("\n  ", " ").split("\n")
}


def encode(document: Doc) -> bytes:
    """Encode a document. Its paths and definitions may be encoded before, by ``message``."""
    return message("Document", document)


def message(name: str, value: object) -> bytes:
    """Encode a part of a document. name: of its message."""
    if isinstance(value, bytes):
        return value
    special = _SPECIAL.get(name)
    if special is not None:
        return special(value)
    assert isinstance(value, dict)
    table = _MESSAGES[name]
    out = bytearray()
    for key, item in value.items():
        field = table.get(key)
        if field is not None:
            out += _field(*field, item)
        elif key.startswith(_EXTENSIONS) and _EXTENSIONS in table:
            out += packed(table[_EXTENSIONS][0], _named(key, _any(item)))
    return bytes(out)


def _field(number: int, type_: str, value: object) -> bytes:
    if type_.startswith("["):
        assert isinstance(value, list | tuple)
        inner = type_[1:-1]
        return b"".join(packed(number, _payload(inner, item)) for item in value)
    match type_:
        case "b":
            return numbered(number, 1) if value else b""
        case "i":
            assert isinstance(value, int)
            return numbered(number, value)
        case "d":
            assert isinstance(value, int | float)
            return doubled(number, value)
    return packed(number, _payload(type_, value))


def _payload(type_: str, value: object) -> bytes:
    if type_ == "s":
        return str(value).encode()
    return _any(value) if type_ == "any" else message(type_, value)


def _any(value: object) -> bytes:
    return packed(2, codec.encode(value) + b"\n")  # JSON is YAML


def _named(name: str, value: bytes) -> bytes:
    return packed(1, name.encode()) + packed(2, value)


def _pairs(number: int, type_: str) -> Callable[[object], bytes]:
    def encode_pairs(value: object) -> bytes:
        assert isinstance(value, dict)
        return b"".join(packed(number, _named(key, message(type_, item))) for key, item in value.items())

    return encode_pairs


def _type(value: object) -> bytes:
    return packed(1, str(value).encode())


def _additional(value: object) -> bytes:
    return packed(1, message("Schema", value)) if isinstance(value, dict) else b"\x10\x01" if value else b"\x10\x00"


def _item(value: object) -> bytes:
    """A parameter, or the reference to a shared one."""
    assert isinstance(value, dict)
    return packed(2, packed(1, value["$ref"].encode())) if "$ref" in value else packed(1, _parameter(value))


def _parameter(value: object) -> bytes:
    assert isinstance(value, dict)
    place = value.get("in")
    if place == "body":
        return packed(1, message("Body", value))
    key = (place, value.get("name"), value.get("description"), value.get("required"))
    found = _parameters.get(key)
    if found is None:
        one = packed(3, message("Query", value)) if place == "query" else packed(4, message("Path", value))
        found = _parameters[key] = packed(2, one)
    return found


_parameters: dict[object, bytes] = {}
"""A cache of encoded parameters: there are few, used thousands of times."""


def _requirement(value: object) -> bytes:
    assert isinstance(value, dict)
    return b"".join(
        packed(1, _named(key, b"".join(packed(1, one.encode()) for one in item))) for key, item in value.items()
    )


_SPECIAL: Mapping[str, Callable[[object], bytes]] = {
    "Paths": _pairs(2, "PathItem"),
    "Definitions": _pairs(1, "Schema"),
    "Responses": _pairs(1, "ResponseValue"),
    "ResponseValue": lambda value: packed(1, message("Response", value)),
    "Items": lambda value: packed(1, message("Schema", value)),
    "Type": _type,
    "Additional": _additional,
    "Parameter": _item,
    "Parameters": _pairs(1, "OneParameter"),
    "OneParameter": _parameter,
    "Requirement": _requirement,
    "Securities": _pairs(1, "Security"),
    "Security": lambda value: packed(2, message("ApiKey", value)),
}
