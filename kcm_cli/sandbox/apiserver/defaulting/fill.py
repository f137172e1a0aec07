"""Two ways to set a default, and one to create a missing object.

Go pointers get a default if they are absent (``absent``); other strings and numbers also if they are empty (``empty``).
"""

from kcm_cli.sandbox.apiserver.types import Tree


def absent(holder: Tree | None, **defaults: object) -> None:
    """Set the fields that are absent, if there is a holder."""
    if holder is not None:
        for field, value in defaults.items():
            if holder.get(field) is None:
                holder[field] = value


def empty(holder: Tree | None, **defaults: object) -> None:
    """Set the fields that are absent, empty, zero or false, if there is a holder."""
    if holder is not None:
        for field, value in defaults.items():
            if not holder.get(field):
                holder[field] = value


def made(holder: Tree, field: str) -> Tree:
    """A field's object, created if it is missing."""
    found: Tree | None = holder.get(field)
    if found is None:
        found = holder[field] = {}
    return found
