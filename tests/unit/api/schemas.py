"""Documents of every kind's OpenAPI schema, as odd as a server may send them."""

import importlib
import json
import pkgutil
import random
from functools import cache
from typing import Any

import kcm_cli.api
import kcm_cli.controllers
import kcm_cli.sandbox
import kcm_cli.trace
from kcm_cli.api.resource import Resource
from kcm_cli.sandbox.apiserver.data import read_data, read_definitions

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


definitions = cache(read_definitions)


@cache
def names() -> dict[str, str]:
    """From ``group/version/Kind`` to the definition's name."""
    found: dict[str, str] = json.loads(read_data("types"))["kinds"]
    return found


def resources() -> dict[str, Resource[Any]]:
    """Those of ``kcm_cli.api``, by the names of their constants."""
    found: dict[str, Resource[Any]] = {}
    for module in pkgutil.iter_modules(kcm_cli.api.__path__):
        for name, value in vars(importlib.import_module(f"kcm_cli.api.{module.name}")).items():
            if isinstance(value, Resource):
                found[name] = value
    return found


def elsewhere() -> dict[str, Resource[Any]]:
    """The kinds whose views parts of their own declare, or take from ``kcm_cli.api``."""
    found: dict[str, Resource[Any]] = {}
    for package in (kcm_cli.controllers, kcm_cli.sandbox, kcm_cli.trace):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, one in vars(importlib.import_module(module.name)).items():
                if isinstance(one, Resource):
                    found[f"{one.view.__module__}.{name}"] = one
    return found


def definition_of(resource: Resource[Any]) -> str:
    """Raises KeyError for a kind that has no schema."""
    return names()[f"{resource.gvr.group}/{resource.gvr.version}/{resource.kind}"]


def document(rng: random.Random, name: str) -> Any:
    """An object of this definition, any part of which may be null, absent, empty, unknown or absurd."""
    return _value(rng, {"$ref": name}, 0)


def _value(rng: random.Random, schema: Schema, depth: int) -> Any:
    if "allOf" in schema:
        return _value(rng, schema["allOf"][0], depth)
    if "$ref" in schema:
        return _value(rng, definitions()[schema["$ref"].rpartition("/")[2]], depth)
    if "properties" in schema:
        return _object(rng, schema["properties"], depth)
    if schema.get("format") == "int-or-string":
        return rng.choice((*ODD_NUMBERS, *ODD_TEXTS))
    match schema.get("type"):
        case "array":
            return [_part(rng, schema["items"], depth) for _ in range(rng.choice((0, 1, 1, 2)))]
        case "object":
            values = schema.get("additionalProperties", {})
            return {key: _part(rng, values, depth) for key in rng.sample(("a", "", "ü"), rng.randrange(3))}
        case "boolean":
            return rng.random() < 0.5
        case "integer":
            return rng.choice(ODD_NUMBERS)
        case "number":
            return rng.choice((0.5, *ODD_NUMBERS))
        case "string":
            return rng.choice(ODD_TEXTS)
        case _:
            return rng.choice(({}, {"x": None}, [None], "x", 1, True))


def _object(rng: random.Random, properties: dict[str, Schema], depth: int) -> Any:
    present = 0.75 if depth < 3 else 0.4 if depth < 8 else 0.0
    fields = {key: _part(rng, schema, depth) for key, schema in properties.items() if rng.random() < present}
    if rng.random() < 0.2:
        fields["neverHeardOf"] = [{"a": None}]
    return fields


def _part(rng: random.Random, schema: Schema, depth: int) -> Any:
    return None if rng.random() < 0.25 else _value(rng, schema, depth + 1)
