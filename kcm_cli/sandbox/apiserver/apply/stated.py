"""Reads fieldsV1 of requests strictly, into the form of ``fieldset``.

upstream: sigs.k8s.io/structured-merge-diff fieldpath/{serialize,serialize-pe}.go
"""

import math
import re

from kcm_cli.machinery import go_json
from kcm_cli.sandbox.apiserver.apply.fieldset import LEAF, SELF, Fields
from kcm_cli.sandbox.apiserver.schema import gojson

_INDEX = re.compile(r"[-+]?[0-9]{1,18}", re.ASCII)


class BadFields(Exception):
    """Invalid fieldsV1."""


def stated_fields(value: object) -> Fields:
    """The set. Path elements of unknown kinds are left out. Raises BadFields."""
    if not isinstance(value, dict):
        raise BadFields("a set is an object")
    found: Fields = {}
    for key, below in value.items():
        element = None if key == SELF else _element(key)
        if element is None:
            continue
        inner = stated_fields(below)
        if not inner:
            found[element] = LEAF
        else:
            found[element] = {SELF: LEAF, **inner} if SELF in below else inner
    return found


def _element(key: str) -> str | None:
    kind, content = key[:2], key[2:]
    if len(kind) < 2 or kind[1] != ":":
        raise BadFields("an element begins with its kind and a colon")
    if kind == "f:":
        return key
    if kind == "i:":
        if not _INDEX.fullmatch(content):
            raise BadFields("an index is a number")
        return f"i:{int(content)}"
    if kind not in ("k:", "v:"):
        return None
    try:
        value, _ = gojson.read(content.encode())
    except gojson.SyntaxProblem as error:
        raise BadFields(str(error)) from None
    if kind == "k:" and not isinstance(value, dict):
        raise BadFields("the keys of an item are an object")
    parts = value.values() if isinstance(value, dict) else [value]
    if any(isinstance(part, float) and math.isinf(part) for part in parts):
        raise BadFields("a number is too large")
    return kind + go_json.encode(value).decode()
