"""Facts about the API of v1.36, compressed; ``tests/generate`` has the scripts that made them."""

from pathlib import Path
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.machinery.packed import unpacked


def read_data(name: str) -> bytes:
    """The JSON text of ``name.json.gz``."""
    return unpacked(Path(__file__).with_name(f"{name}.json.gz"))


def read_descriptions() -> dict[str, str]:
    """The descriptions of the fields that are columns of tables, by ``Type.field``."""
    return codec.decode(read_data("columns"), dict[str, str])


def read_definitions() -> dict[str, dict[str, Any]]:
    """The published schemas by name. ``definitions.json.bz2`` lacks the above descriptions. Takes some 80 ms."""
    # imported here: a Python that was built without it serves everything but OpenAPI
    import bz2

    packed = Path(__file__).with_name("definitions.json.bz2").read_bytes()
    found = codec.decode(bz2.decompress(packed), dict[str, dict[str, Any]])
    columns = read_descriptions()
    for name, definition in found.items():
        properties: dict[str, Any] = definition.get("properties", {})
        for field, schema in properties.items():
            text = columns.get(f"{name.rpartition('.')[2]}.{field}")
            if text and "description" not in schema:
                properties[field] = dict(sorted({"description": text, **schema}.items()))
    return found
