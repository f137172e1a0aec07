"""OpenAPI 3.0: one document per group and version."""

from collections.abc import Callable, Iterable, Iterator

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.openapi.operations import PARAMETERS, Operation, path_item

_V2 = "#/definitions/"
_V3 = "#/components/schemas/"
_SPECIAL: dict[str, Doc] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
SECURITY: Doc = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}

Lookup = Callable[[str], Doc | None]
"""The definition of a name, in the form of v2."""


def document(version: str, operations: Iterable[Operation], lookup: Lookup) -> Doc:
    """A whole document: the operations and every schema that they lead to."""
    paths: dict[str, Doc] = {}
    names: set[str] = set()
    for operation in operations:
        item = paths.setdefault(operation.path, path_item(operation.path, _parameter))
        item[operation.method] = _operation(operation)
        names.update(name for name in (operation.body, operation.answer) if name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": {path: paths[path] for path in sorted(paths)},
        "components": {"schemas": _schemas(names, lookup), "securitySchemes": SECURITY},
    }


def _parameter(name: str, place: str) -> Doc:
    kind, text = PARAMETERS[name]
    parameter: Doc = {"name": name, "in": place, "description": text, "schema": {"type": kind, "uniqueItems": True}}
    if place == "path":
        parameter["required"] = True
    return parameter


def _operation(operation: Operation) -> Doc:
    answer: Doc = {"$ref": _V3 + operation.answer} if operation.answer else {"type": "string"}
    content = {media: {"schema": answer} for media in operation.answer_types}
    responses: Doc = {str(code): {"description": _STATUS[code], "content": content} for code in operation.codes}
    responses["401"] = {"description": "Unauthorized"}
    out: Doc = {
        "description": operation.description,
        "operationId": operation.id,
        "responses": responses,
        "tags": [operation.tag],
    }
    if operation.query:
        out["parameters"] = [_parameter(name, "query") for name in operation.query]
    if operation.body:
        schema = {"schema": {"$ref": _V3 + operation.body}}
        body: Doc = {"content": {media: schema for media in operation.body_types}}
        if operation.body_required:
            body["required"] = True
        out["requestBody"] = body
    if operation.action:
        out["x-kubernetes-action"] = operation.action
    if operation.kind is not None:
        kind = operation.kind
        out["x-kubernetes-group-version-kind"] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return out


_STATUS = {200: "OK", 201: "Created", 202: "Accepted"}


def _schemas(names: set[str], lookup: Lookup) -> Doc:
    found: dict[str, object] = {}
    todo = sorted(names)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        definition = lookup(name)
        if definition is None:
            continue
        found[name] = {**definition, **_special(name)} if name in _SPECIAL else to_v3(definition)
        todo.extend(_references(definition))
    return {name: found[name] for name in sorted(found)}


def _special(name: str) -> Doc:
    return {**_SPECIAL[name]}


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


def to_v3(value: object) -> object:
    """A schema of v2 in the form of v3: references point elsewhere and stand alone."""
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
