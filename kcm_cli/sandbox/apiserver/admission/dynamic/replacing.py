"""Puts another object in the place of the one that is written."""

from kcm_cli.sandbox.apiserver.types import Attributes, Tree


def replace_object(attrs: Attributes, new: Tree) -> None:
    """Change ``attrs.obj`` into ``new``: others hold on to it, and to its metadata."""
    current = attrs.obj
    if current is None or new is current:
        return
    metadata = current.get("metadata")
    fresh = dict(new)
    if isinstance(metadata, dict):
        changed = dict(fresh.get("metadata") or {})
        metadata.clear()
        metadata.update(changed)
        fresh["metadata"] = metadata
    current.clear()
    current.update(fresh)
