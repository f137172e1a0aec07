"""Small work on documents that rules of many kinds do."""

from kcm_cli.sandbox.apiserver.types import Tree


def keep(new: Tree, old: Tree, field: str) -> None:
    """Take a field over from the old object, present or not."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)
