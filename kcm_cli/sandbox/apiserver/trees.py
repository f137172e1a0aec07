"""Operations on documents that the strategies of many kinds share."""

from kcm_cli.sandbox.apiserver.types import Tree


def keep(new: Tree, old: Tree, field: str) -> None:
    """Set a field to its value in the old object, or remove it if the old object does not have it."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


def put(holder: Tree, field: str, value: object) -> None:
    """Set a field, or remove it if the value is empty."""
    if value:
        holder[field] = value
    else:
        holder.pop(field, None)


def condition(doc: Tree, type_: str) -> Tree | None:
    """The condition of this type in an object's status."""
    conditions: list[Tree] = (doc.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == type_), None)


def is_true(doc: Tree, type_: str) -> bool:
    """Whether the condition of this type is True."""
    found = condition(doc, type_)
    return found is not None and found.get("status") == "True"
