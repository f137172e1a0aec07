"""Paths to fields: ``.spec.size``, ``['a.b'].c``.

upstream: apiextensions-apiserver pkg/apiserver/schema/cel/validation.go#ValidFieldPath
"""

import re

from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.crd.structural import Structural

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def resolve(text: str, schema: Structural, *, brackets: bool = True) -> tuple[str, str, Structural]:
    """The path in normal form, its first name, and the schema of its field. Raises FormatError."""
    tokens = iter(_TOKEN.findall(text))
    shown = first = ""
    for token in tokens:
        if token == ".":
            name = _next(tokens)
        elif token == "[":
            if not brackets:
                raise FormatError("array notation is not allowed")
            name = _quoted(_next(tokens))
        else:
            raise FormatError(f"expected [ or . but got: {token}")
        if schema.properties:
            shown = f"{shown}.{name}" if shown else name
            if name not in schema.properties:
                raise FormatError("does not refer to a valid field")
            schema = schema.properties[name]
        elif schema.values is not None:
            shown, schema = f"{shown}[{name}]", schema.values
        else:
            raise FormatError("does not refer to a valid field")
        first = first or name
        if token == "[" and (end := _next(tokens)) != "]":
            raise FormatError(f"expected ] but got {end}")
    return shown, first, schema


def _next(tokens: object) -> str:
    token = next(tokens, None)  # type: ignore[call-overload]  # an iterator of re.findall
    if token is None:
        raise FormatError("unexpected end of JSON path")
    return str(token)


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FormatError(f"expected single quoted string but got {token}")

    def unescape(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise FormatError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", unescape, token[1:-1])
