"""Makes types.json.gz and definitions.json.bz2 from the package kubernetes-validate, to be installed for it.

    python -m tests.generate.types

Run ``tests.generate.columns`` first.

``types``: the shape of every type that a body can have (no prose, no alpha or beta kinds): some 200 KB,
read in a few milliseconds. ``definitions``: the same definitions with their prose, for /openapi, read
only when that is asked for. Both are deterministic: running this again changes nothing.
"""

import json
import re
from collections.abc import Iterator

from kcm_cli.sandbox.apiserver.schema.published import META, SPECIAL, types_of
from tests.generate import data

Json = dict[str, object]

_REF = "#/$defs/"
_VERSION_INFO = "io.k8s.apimachinery.pkg.version."
_UNIONS = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"format": "int-or-string", "type": "string"},
}
"""Types of two forms, as OpenAPI v2 has to put it."""
_STABLE = re.compile(r"^v\d+$")


def main() -> None:
    definitions = data.definitions()
    wanted = _reachable(definitions)
    _write_types(definitions, wanted)
    kept = {name: _UNIONS.get(name) or _clean(definitions[name]) for name in sorted(wanted)}
    data.write_definitions(json.loads(json.dumps(kept, sort_keys=True).replace(_REF, "#/definitions/")))


def _kinds(definition: Json) -> Iterator[tuple[str, str, str]]:
    for gvk in definition.get("x-kubernetes-group-version-kind", []):  # type: ignore[attr-defined]
        yield gvk["group"], gvk["version"], gvk["kind"]


def _reachable(definitions: dict[str, Json]) -> set[str]:
    """The definitions of stable kinds and all that they refer to."""
    todo = [name for name, d in definitions.items() if any(_STABLE.match(v) for _, v, _ in _kinds(d))]
    todo += [name for name in definitions if name.startswith((META, _VERSION_INFO))]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo.extend(_refs(definitions[name]))
    return found


def _refs(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        ref = node.get("$ref")
        if isinstance(ref, str):
            yield ref.removeprefix(_REF)
        for value in node.values():
            yield from _refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _refs(value)


def _write_types(definitions: dict[str, Json], wanted: set[str]) -> None:
    registered = sorted({f"{g}/{v}/{k}" for d in definitions.values() for g, v, k in _kinds(d)})
    kinds: dict[str, str] = {}
    types: dict[str, Json] = {}
    for name in sorted(wanted):
        definition = definitions[name]
        gvks = list(_kinds(definition))
        if len(gvks) == 1:
            kinds["/".join(gvks[0])] = name
        if name not in SPECIAL and not name.endswith("List"):
            types |= types_of(name, definition)
    text = json.dumps({"kinds": kinds, "registered": registered, "types": types}, separators=(",", ":"))
    data.write("types", text + "\n")


def _clean(node: object) -> object:
    """Take back what the package added to upstream's definitions: nullable types and enums of kind and
    version.
    """
    if isinstance(node, list):
        return [_clean(value) for value in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if key == "type" and isinstance(value, list):
            out[key] = next(k for k in value if k != "null")
        elif key == "properties":
            out[key] = {name: _clean_property(name, prop) for name, prop in value.items()}
        else:
            out[key] = _clean(value)
    return out


def _clean_property(name: str, prop: object) -> object:
    cleaned = _clean(prop)
    if name in ("apiVersion", "kind") and isinstance(cleaned, dict):
        cleaned.pop("enum", None)
    return cleaned


if __name__ == "__main__":
    main()
