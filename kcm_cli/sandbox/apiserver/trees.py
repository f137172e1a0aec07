"""Operations on documents that the strategies of many kinds share."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kcm_cli.sandbox.apiserver.types import Tree

T = TypeVar("T")


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


def at(doc: object, path: str, otherwise: object = None) -> Any:
    """The value at a dotted path; ``otherwise`` if it is missing or null."""
    found: Any = doc
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    return otherwise if found is None else found


def places(doc: Tree | None, path: str, start: str = "") -> Iterator[tuple[Any, str]]:
    """The values at a path such as ``spec.rules[].host``, each with its own path (``spec.rules[0].host``).

    ``[]`` stands for each item of a list. Values that are missing or null are left out. ``start``: the path of ``doc``.
    """
    step, _, rest = path.partition(".")
    name = step.removesuffix("[]")
    value, place = (doc or {}).get(name), f"{start}.{name}" if start else name
    found: Iterable[tuple[Any, str]] = ((value, place),) if value is not None else ()
    if name != step:
        found = ((item, f"{place}[{index}]") for index, item in enumerate(value or ()))
    for item, where in found:
        if rest:
            yield from places(item, rest, where)
        else:
            yield item, where


def each_at(rule: Callable[[Any, str], Iterable[T]], doc: Tree | None, path: str, start: str = "") -> list[T]:
    """What a rule returns for the values at a path: errors or warnings (see ``places``)."""
    return [found for value, place in places(doc, path, start) for found in rule(value, place)]
