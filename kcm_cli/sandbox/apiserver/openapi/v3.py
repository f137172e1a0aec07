"""OpenAPI 3.0: a document for each group and version."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.runtime.turns import made_in_turns
from kcm_cli.sandbox.apiserver.openapi.operations import (
    Operation,
    Parameter,
    extensions,
    laid_out,
    parameter_of,
    responses,
)

_V2 = "#/definitions/"
_V3 = "#/components/schemas/"
_SPECIAL: dict[str, Doc] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        "description": "A quantity: a number with a suffix, such as 100m, 1.5 or 2Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "description": "An integer, or a string: a name or a percentage.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
_BELOW = ("items", "additionalProperties")
_KINDS = "x-kubernetes-group-version-kind"
SECURITY: Doc = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}

Lookup = Callable[[str], Doc | None]
"""Returns a definition by its name, in the form of v2."""


async def document(version: str, operations: Iterable[Operation], lookup: Lookup) -> Doc:
    """The document of operations, with all schemas that they refer to. Its paths and schemas, which are nearly all of
    it, are made and encoded in turns."""
    every = await made_in_turns(lambda operation: operation, operations)
    names = {name for operation in every for name in (operation.body, operation.answer) if name}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": dict(await made_in_turns(_encoded, laid_out(every, _parameter, _operation))),
        "components": {
            "schemas": dict(sorted(await made_in_turns(_encoded, _schemas(names, lookup)))),
            "securitySchemes": SECURITY,
        },
    }


def _encoded(named: tuple[str, object]) -> tuple[str, msgspec.Raw]:
    return named[0], msgspec.Raw(codec.encode(named[1]))


def _parameter(parameter: Parameter) -> Doc:
    return {**parameter.plain, "schema": {"type": parameter.type, "uniqueItems": True}}


def _operation(operation: Operation) -> Doc:
    def content(schema: Doc) -> Doc:
        return {"content": {media: {"schema": schema} for media in operation.answer_types}}

    out: Doc = {
        "description": operation.description,
        "operationId": operation.id,
        "responses": responses(operation, _V3, content),
        "tags": [operation.tag],
    }
    if operation.query:
        out["parameters"] = [_parameter(parameter_of(operation, name, "query")) for name in operation.query]
    if operation.body:
        schema = {"schema": {"$ref": _V3 + operation.body}}
        body: Doc = {"content": {media: schema for media in operation.body_types}}
        if operation.body_required:
            body["required"] = True
        out["requestBody"] = body
    return {**out, **extensions(operation)}


def _schemas(names: set[str], lookup: Lookup) -> Iterator[tuple[str, object]]:
    found = set[str]()
    todo = sorted(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        definition = lookup(name)
        if definition is None:
            continue
        found.add(name)
        todo.extend(_references(definition))
        yield name, _SPECIAL.get(name) or to_v3(definition)


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        ref = value.get("$ref")
        if isinstance(ref, str):
            yield ref.rpartition("/")[2]
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


EXPLAINED = "explained"
"""The fact that ends the description of a field: what each value means."""


def detailed(definition: Doc, facts: Mapping[str, Doc], but: str = "") -> Doc:
    """A definition with the facts about its fields, without those named ``but``. Shares all other values."""
    if not facts:
        return definition
    properties = cast("dict[str, Doc]", definition["properties"])
    known = {name: _with(prop, facts[name], but) if name in facts else prop for name, prop in properties.items()}
    return {**definition, "properties": known}


def _with(schema: Doc, facts: Doc, but: str) -> Doc:
    own = {key: fact for key, fact in facts.items() if key not in (*_BELOW, but, EXPLAINED)}
    if EXPLAINED in facts:
        own["description"] = f"{schema.get('description', '')}{facts[EXPLAINED]}"
    below = {key: _with(cast("Doc", schema[key]), cast("Doc", facts[key]), but) for key in _BELOW if key in facts}
    return {**schema, **own, **below}


def of_group(definition: Doc, group: str, version: str) -> Doc:
    """A definition that all groups share, with the kinds of one group."""
    kinds = cast("list[Doc]", definition.get(_KINDS) or [])
    if len(kinds) < 2:
        return definition
    wanted = (("", "v1"), (group, version))
    return {**definition, _KINDS: [kind for kind in kinds if (kind["group"], kind["version"]) in wanted]}


def to_v3(value: object) -> object:
    """A schema of v2 in the form of v3: references have other targets and no siblings."""
    if isinstance(value, list):
        return [to_v3(item) for item in value]
    if not isinstance(value, dict):
        return value
    ref = value.get("$ref")
    if isinstance(ref, str) and ref.startswith((_V2, _V3)):
        target = {"$ref": _V3 + ref.rpartition("/")[2]}
        rest = {key: item for key, item in value.items() if key != "$ref"}
        return {"allOf": [target], **rest} if rest else target
    return {key: to_v3(item) for key, item in value.items()}
