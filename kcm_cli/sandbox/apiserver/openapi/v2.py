"""OpenAPI 2.0: one document."""

from collections.abc import Iterable

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.openapi.operations import Operation, extensions, form_of_parameter, laid_out, responses
from kcm_cli.sandbox.apiserver.openapi.v3 import SECURITY

_PREFIX = "#/definitions/"


def document(version: str, operations: Iterable[Operation], definitions: Doc) -> Doc:
    """The document of all operations."""
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "definitions": definitions,
        "paths": laid_out(operations, _parameter, _operation),
        "parameters": {},
        "securityDefinitions": SECURITY,
        "security": [{"BearerToken": []}],
    }


def _parameter(name: str, place: str) -> Doc:
    return form_of_parameter(name, place, lambda kind: {"type": kind, "uniqueItems": True})


def _operation(operation: Operation) -> Doc:
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
        "responses": responses(operation, _PREFIX, lambda schema: {"schema": schema}),
    }
    if parameters:
        out["parameters"] = parameters
    return {**out, **extensions(operation)}
