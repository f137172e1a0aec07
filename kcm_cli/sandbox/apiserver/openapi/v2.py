"""OpenAPI 2.0: one document. Its definitions are copied as text, without decoding them."""

from collections.abc import Iterable

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.openapi.operations import PARAMETERS, Operation, laid_out
from kcm_cli.sandbox.apiserver.openapi.v3 import SECURITY

_STATUS = {200: "OK", 201: "Created", 202: "Accepted"}
_PREFIX = "#/definitions/"


def document(version: str, operations: Iterable[Operation], definitions: bytes, custom: Doc) -> bytes:
    """The document. ``definitions``: the JSON of an object; ``custom``: definitions to add to it."""
    head = codec.encode({"swagger": "2.0", "info": {"title": "Kubernetes", "version": version}})
    tail = codec.encode(
        {
            "paths": laid_out(operations, _parameter, _operation),
            "parameters": {},
            "securityDefinitions": SECURITY,
            "security": [{"BearerToken": []}],
        }
    )
    more = b"," + codec.encode(custom)[1:-1] if custom else b""
    return b"".join((head[:-1], b',"definitions":', definitions.rstrip()[:-1], more, b"},", tail[1:]))


def _parameter(name: str, place: str) -> Doc:
    kind, text = PARAMETERS[name]
    parameter: Doc = {"name": name, "in": place, "description": text, "type": kind, "uniqueItems": True}
    if place == "path":
        parameter["required"] = True
    return parameter


def _operation(operation: Operation) -> Doc:
    answer: Doc = {"$ref": _PREFIX + operation.answer} if operation.answer else {"type": "string"}
    responses: Doc = {str(code): {"description": _STATUS[code], "schema": answer} for code in operation.codes}
    responses["401"] = {"description": "Unauthorized"}
    parameters = [_parameter(name, "query") for name in operation.query]
    if operation.body:
        body: Doc = {"name": "body", "in": "body", "schema": {"$ref": _PREFIX + operation.body}}
        if operation.body_required:
            body["required"] = True
        parameters.insert(0, body)
    out: Doc = {
        "description": operation.description,
        "consumes": list(operation.body_types),
        "produces": list(operation.answer_types),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.id,
        "responses": responses,
    }
    if parameters:
        out["parameters"] = parameters
    if operation.action:
        out["x-kubernetes-action"] = operation.action
    if operation.kind is not None:
        kind = operation.kind
        out["x-kubernetes-group-version-kind"] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    return out
