"""OpenAPI 2.0: one document."""

from collections.abc import Callable, Iterable

from kcm_cli.machinery.codec import Doc
from kcm_cli.runtime.turns import made_in_turns
from kcm_cli.sandbox.apiserver.openapi.operations import (
    Operation,
    Parameter,
    extensions,
    laid_out,
    parameter_of,
    responses,
    shared_body,
)
from kcm_cli.sandbox.apiserver.openapi.v3 import SECURITY

_PREFIX = "#/definitions/"


Encoded = Callable[[str, Doc], object]
"""Encodes a part of the document, which is a ``PathItem`` or a ``Schema``."""


async def document(
    version: str, operations: Iterable[Operation], definitions: Iterable[tuple[str, Doc]], encoded: Encoded
) -> Doc:
    """The document of all operations. Its paths and definitions, which are nearly all of it, are made and encoded in
    turns."""
    shared: dict[str, Doc] = {}
    every = await made_in_turns(lambda operation: operation, operations)
    items = laid_out(every, lambda each: _parameter(each, shared), lambda each: _operation(each, shared))
    paths = await made_in_turns(lambda item: (item[0], encoded("PathItem", item[1])), items)
    schemas = await made_in_turns(lambda named: (named[0], encoded("Schema", named[1])), definitions)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "definitions": dict(schemas),
        "paths": dict(paths),
        "parameters": {name: shared[name] for name in sorted(shared)},
        "securityDefinitions": SECURITY,
        "security": [{"BearerToken": []}],
    }


def _parameter(parameter: Parameter, shared: dict[str, Doc]) -> Doc:
    """A parameter, or the reference to a shared one, which is added to these."""
    form: Doc = {**parameter.plain, "type": parameter.type, "uniqueItems": True}
    return _referred(parameter.ref, form, shared)


def _referred(ref: str, form: Doc, shared: dict[str, Doc]) -> Doc:
    if not ref:
        return form
    shared.setdefault(ref, form)
    return {"$ref": f"#/parameters/{ref}"}


def _operation(operation: Operation, shared: dict[str, Doc]) -> Doc:
    parameters = [_parameter(parameter_of(operation, name, "query"), shared) for name in operation.query]
    if operation.body:
        body: Doc = {"name": "body", "in": "body", "schema": {"$ref": _PREFIX + operation.body}}
        if operation.body_required:
            body["required"] = True
        parameters.insert(0, _referred(shared_body(operation.body), body, shared))
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
