"""The two ways of filling in a default, and the way of making a missing object.

Absent differs from empty for fields that are pointers in the original; text and numbers that are not are
absent when they are empty.
"""

from collections.abc import Iterable

from kcm_cli.sandbox.apiserver.types import Tree

Defaults = Iterable[tuple[str, object]]
"""Fields and values. Values are shared: scalars only."""


def absent(holder: Tree, defaults: Defaults) -> None:
    """Set what is not there."""
    for field, value in defaults:
        if holder.get(field) is None:
            holder[field] = value


def empty(holder: Tree, defaults: Defaults) -> None:
    """Set what is not there or is empty, zero or false."""
    for field, value in defaults:
        if not holder.get(field):
            holder[field] = value


def made(holder: Tree, field: str) -> Tree:
    """A field's object, made if it is missing."""
    found: Tree | None = holder.get(field)
    if found is None:
        found = holder[field] = {}
    return found
