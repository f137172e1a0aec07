"""Documents of every kind's OpenAPI schema, as odd as a server may send them."""

import gzip
import json
from functools import cache
from typing import Any

from hypothesis import strategies as st

from kcm_cli.api.resource import Resource
from tests.places import ROOT

DATA = ROOT / "kcm_cli" / "sandbox" / "apiserver" / "data"
ODD_TEXTS = (
    "",
    "Unknown",
    "NEVER-HEARD-OF",
    "0",
    "-1",
    "1e400",
    "100%",
    "0001-01-01T00:00:00Z",
    "not a time",
    "ü",
)
ODD_NUMBERS = (0, 1, -1, 2**31 - 1, 2**63 - 1, -(2**63))
Schema = dict[str, Any]


@cache
def definitions() -> dict[str, Schema]:
    found: dict[str, Schema] = json.loads(gzip.decompress((DATA / "definitions.json.gz").read_bytes()))
    return found


@cache
def names() -> dict[str, str]:
    """From ``group/version/Kind`` to the definition's name."""
    found: dict[str, str] = json.loads((DATA / "types.json").read_text())["kinds"]
    return found


def definition_of(resource: Resource[Any]) -> str:
    """Raises KeyError for a kind that has no schema."""
    return names()[f"{resource.gvr.group}/{resource.gvr.version}/{resource.kind}"]


@st.composite
def documents(draw: st.DrawFn, name: str) -> Any:
    """An object of this definition, any part of which may be null, absent, empty, unknown or absurd."""
    return _value(draw, {"$ref": name}, 0)


def _value(draw: st.DrawFn, schema: Schema, depth: int) -> Any:
    if "allOf" in schema:
        return _value(draw, schema["allOf"][0], depth)
    if "$ref" in schema:
        return _value(draw, definitions()[schema["$ref"].rpartition("/")[2]], depth)
    if "properties" in schema:
        return _object(draw, schema["properties"], depth)
    if schema.get("format") == "int-or-string":
        return draw(st.sampled_from((*ODD_NUMBERS, *ODD_TEXTS)))
    match schema.get("type"):
        case "array":
            return [_part(draw, schema["items"], depth) for _ in range(draw(_SIZES))]
        case "object":
            values = schema.get("additionalProperties", {})
            keys = draw(st.lists(st.sampled_from(("a", "", "ü")), max_size=2, unique=True))
            return {key: _part(draw, values, depth) for key in keys}
        case "boolean":
            return draw(st.booleans())
        case "integer":
            return draw(st.sampled_from(ODD_NUMBERS))
        case "number":
            return draw(st.sampled_from((0.5, *ODD_NUMBERS)))
        case "string":
            return draw(st.sampled_from(ODD_TEXTS))
        case _:
            return draw(st.sampled_from(({}, {"x": None}, [None], "x", 1, True)))


_SIZES = st.sampled_from((0, 1, 1, 2))
_PRESENT = st.sampled_from((True, True, True, False))
_NULL = st.sampled_from((True, False, False, False))


def _object(draw: st.DrawFn, properties: dict[str, Schema], depth: int) -> Any:
    fields: dict[str, Any] = {}
    few = draw(st.integers(0, 2**16 - 1)) if depth > 2 else -1
    for place, (key, schema) in enumerate(properties.items()):
        if depth > 7 or not few >> (place % 16) & 1 or not draw(_PRESENT):
            continue
        fields[key] = _part(draw, schema, depth)
    if depth % 2:
        fields["neverHeardOf"] = [{"a": None}]
    return fields


def _part(draw: st.DrawFn, schema: Schema, depth: int) -> Any:
    return None if draw(_NULL) else _value(draw, schema, depth + 1)
