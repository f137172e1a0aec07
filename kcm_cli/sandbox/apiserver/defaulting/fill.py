"""Two ways to set a default, and one to create a missing object.

Go pointers get a default if they are absent (``absent``); other strings and numbers also if they are empty (``empty``).
"""

from collections.abc import Iterable

from kcm_cli.sandbox.apiserver.types import Tree

Defaults = Iterable[tuple[str, object]]
"""Fields and values. Values are shared: scalars only."""


def absent(holder: Tree, defaults: Defaults) -> None:
    """Set the fields that are absent."""
    for field, value in defaults:
        if holder.get(field) is None:
            holder[field] = value


def empty(holder: Tree, defaults: Defaults) -> None:
    """Set the fields that are absent, empty, zero or false."""
    for field, value in defaults:
        if not holder.get(field):
            holder[field] = value


def made(holder: Tree, field: str) -> Tree:
    """A field's object, created if it is missing."""
    found: Tree | None = holder.get(field)
    if found is None:
        found = holder[field] = {}
    return found
