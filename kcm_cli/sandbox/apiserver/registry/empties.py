"""Empty lists, maps and strings in requests.

Decoding drops them. Upstream distinguishes them from absent fields in the values that validation errors print, and
when it compares objects with reflect.DeepEqual, since encoding/json decodes ``[]`` to an empty slice.
"""

from collections.abc import Callable, Sequence

from kcm_cli.sandbox.apiserver.types import FieldError, Tree

_NOT_FROM_CLIENTS = ("metadata", "status")
_CONTAINERS: tuple[object, ...] = ([], {})
_TEXTS: tuple[object, ...] = ([], {}, "")


def with_empty(doc: Tree, stated: Tree, *, texts: bool = False) -> Tree:
    """The object with the empty lists and maps (with ``texts`` also strings) of ``stated``. Shares all other values."""
    given = {key: value for key, value in stated.items() if key not in _NOT_FROM_CLIENTS}
    filled = _filled(doc, given, _TEXTS if texts else _CONTAINERS)
    assert isinstance(filled, dict)
    return filled


def reworded(
    errors: list[FieldError], doc: Tree, stated: Tree, check: Callable[[Tree], Sequence[FieldError]]
) -> list[FieldError]:
    """The errors with the values that the client wrote. ``stated``: the object before decoding."""
    filled = with_empty(doc, stated, texts=True)
    if filled == doc:
        return errors
    there = {(error.type, error.field) for error in errors}
    same = [error for error in check(filled) if (error.type, error.field) in there]
    return same if len(same) == len(errors) else errors


def _filled(value: object, stated: object, empty: tuple[object, ...]) -> object:
    if isinstance(value, dict) and isinstance(stated, dict):
        missing = {key: part for key, part in stated.items() if part in empty and value.get(key) is None}
        found = {key: _filled(part, stated[key], empty) for key, part in value.items() if key in stated}
        return {**value, **found, **missing}
    if isinstance(value, list) and isinstance(stated, list) and len(value) == len(stated):
        return [_filled(part, below, empty) for part, below in zip(value, stated, strict=True)]
    return value
