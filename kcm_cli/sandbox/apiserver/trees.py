"""An operation on documents that the strategies of many kinds share."""

from kcm_cli.sandbox.apiserver.types import Tree


def keep(new: Tree, old: Tree, field: str) -> None:
    """Set a field to its value in the old object, or remove it if the old object does not have it."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
