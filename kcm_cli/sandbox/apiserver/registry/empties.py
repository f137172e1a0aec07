"""Empty lists and maps that a client wrote: decoding drops them, and the texts of errors tell them from absent ones.

upstream: encoding/json makes an empty slice of ``[]``, and validation prints it.
"""

from kcm_cli.sandbox.apiserver.types import Tree

_NOT_THE_CLIENTS = ("metadata", "status")


def with_empty(doc: Tree, stated: Tree) -> Tree:
    """The object with the empty lists and maps that it has in ``stated`` and lacks itself; shares the rest."""
    wanted = {key: value for key, value in stated.items() if key not in _NOT_THE_CLIENTS}
    filled = _filled(doc, wanted)
    assert isinstance(filled, dict)
    return filled


def _filled(value: object, stated: object) -> object:
    if isinstance(value, dict) and isinstance(stated, dict):
        missing = {key: part for key, part in stated.items() if part in ([], {}) and value.get(key) is None}
        found = {key: _filled(part, stated[key]) for key, part in value.items() if key in stated}
        return {**value, **found, **missing}
    if isinstance(value, list) and isinstance(stated, list) and len(value) == len(stated):
        return [_filled(part, below) for part, below in zip(value, stated, strict=True)]
    return value
