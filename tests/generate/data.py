"""Where the data files of the sandbox's API server are, and the published schemas that some are made from."""

import bz2
import gzip
import json
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kcm_cli.sandbox.apiserver import data

VERSION = "v1.36.0"


def definitions() -> dict[str, dict[str, Any]]:
    """The API's schema, by the names of types; it is in the package kubernetes-validate, to be installed for it."""
    found = find_spec("kubernetes_validate")
    if found is None or found.origin is None:
        raise SystemExit("install the package kubernetes-validate first")
    schemas = Path(found.origin).parent / "kubernetes-json-schema" / f"{VERSION}-local" / "_definitions.json"
    published: dict[str, dict[str, Any]] = json.loads(schemas.read_text())["$defs"]
    return published


def write(name: str, text: str) -> None:
    """Make ``name.json.gz`` of the sandbox's API server."""
    write_to(Path(data.__file__).with_name(f"{name}.json.gz"), text)


def write_to(place: Path, text: str) -> None:
    """Make a file: the same bytes for the same text."""
    place.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def write_definitions(published: dict[str, dict[str, Any]]) -> None:
    """Make ``definitions.json.bz2``, which is a third smaller than with gzip, without the descriptions in
    ``columns.json.gz``.
    """
    columns = data.read_descriptions()
    kept = deepcopy(published)
    for name, definition in kept.items():
        for field, schema in definition.get("properties", {}).items():
            if schema.get("description", "") == columns.get(f"{name.rpartition('.')[2]}.{field}"):
                del schema["description"]
    text = json.dumps(kept, separators=(",", ":"), sort_keys=True)
    Path(data.__file__).with_name("definitions.json.bz2").write_bytes(bz2.compress(text.encode(), 9))
    assert data.read_definitions() == published, "a field has the description of a column and should have none"
