"""Makes parameters.json.gz: the parameters of operations in OpenAPI v2, and the names of the shared ones.

    python -m tests.generate.parameters FILE

FILE is /openapi/v2 of a v1.36 server without custom resources, as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kcm_cli.sandbox.apiserver.openapi.operations import variant
from tests.generate import data

_NAMED = "name"


def main(path: str) -> None:
    """Write parameters.json.gz."""
    document = json.loads(Path(path).read_text())
    shared: dict[str, Any] = document["parameters"]
    found: dict[str, Any] = {}
    for place, item in document["paths"].items():
        _take(found, shared, variant(place, ""), item.get("parameters", ()))
        for method, operation in item.items():
            if method != "parameters":
                _take(
                    found,
                    shared,
                    variant(place, operation.get("x-kubernetes-action", "")),
                    operation.get("parameters", ()),
                )
    plain = {key: one for key, one in found.items() if not key.startswith(" ")}
    kept = {key: one for key, one in plain.items() if found.get(f" {key.split(' ', 1)[1]}") != one}
    kept |= {key: one for key, one in found.items() if key.startswith(" ")}
    data.write("parameters", json.dumps(dict(sorted(kept.items())), indent=0, sort_keys=True) + "\n")


def _take(found: dict[str, Any], shared: dict[str, Any], kind: str, parameters: Any) -> None:
    for one in parameters:
        ref = one.get("$ref", "").removeprefix("#/parameters/")
        parameter = shared[ref] if ref else one
        if parameter["in"] == "body" and not ref:
            continue
        key = f"{kind} {parameter['name']} {parameter['in']}"
        if parameter["in"] == "body":
            key = f" {parameter['schema']['$ref'].removeprefix('#/definitions/')} body"
        kept = {"ref": ref} if ref else {}
        if parameter["in"] != "body":
            kept |= {"type": parameter["type"], "description": parameter["description"]}
        if parameter["name"] == _NAMED:
            kept = {"type": "string", "description": "name of the "}
        if found.setdefault(key, kept) != kept:
            raise SystemExit(f"{key} has several forms")


if __name__ == "__main__":
    main(sys.argv[1])
