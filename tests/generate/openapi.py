"""Makes openapi.json.gz: what the documents of OpenAPI v3 say beyond those of v2, which values a field may have
and which one it has unless it is given; and enums.json.gz: how descriptions of fields explain these values.

    python -m tests.generate.openapi URL

URL is that of a ``kubectl proxy`` to a v1.36 server without custom resources.
"""

import json
import re
import sys
from urllib.request import urlopen

from kcm_cli.machinery import codec
from tests.generate import data

Json = dict[str, object]
_KEYS = ("default", "enum")
_BELOW = ("items", "additionalProperties")
_EXPLAINED = re.compile(r"\n*Possible enum values:\n.*", re.DOTALL)


def main(url: str) -> None:
    """Write both files."""
    facts: dict[str, Json] = {}
    explained: dict[str, Json] = {}
    for place in _read(f"{url}/openapi/v3")["paths"]:  # type: ignore[attr-defined]
        schemas = _read(f"{url}/openapi/v3/{place}").get("components", {}).get("schemas", {})  # type: ignore[attr-defined]
        for name, schema in schemas.items():
            if found := _of_properties(schema):
                facts[name] = found
            if texts := _explained(schema):
                explained[name] = texts
    _write("openapi", facts)
    _write("enums", explained)


def _write(file: str, found: dict[str, Json]) -> None:
    lines = [f"{json.dumps(name)}:{codec.encode(found[name]).decode()}" for name in sorted(found)]
    data.write(file, "{\n" + ",\n".join(lines) + "\n}\n")


def _read(url: str) -> Json:
    with urlopen(url) as answer:
        found: Json = json.load(answer)
    return found


def _of_properties(schema: Json) -> Json:
    properties: dict[str, Json] = schema.get("properties", {})  # type: ignore[assignment]
    return {name: found for name, prop in sorted(properties.items()) if (found := _facts(prop))}


def _explained(schema: Json) -> Json:
    properties: dict[str, Json] = schema.get("properties", {})  # type: ignore[assignment]
    found = {name: _EXPLAINED.search(str(prop.get("description", ""))) for name, prop in sorted(properties.items())}
    return {name: match.group() for name, match in found.items() if match is not None}


def _facts(schema: Json) -> Json:
    found: Json = {key: schema[key] for key in _KEYS if key in schema}
    for key in _BELOW:
        below = schema.get(key)
        if isinstance(below, dict) and (inner := _facts(below)):
            found[key] = inner
    return found


if __name__ == "__main__":
    main(sys.argv[1])
