"""Random changes of an object: applies by several managers, patches and updates that drop, empty and replace parts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.differential.variations import Tree

_IDENTITY = ("apiVersion", "kind", "name")
_ODD: tuple[Any, ...] = (0, 1, -1, "x", "10%", True, None)
_APPLY = "application/apply-patch+yaml"
_MERGES = ("application/merge-patch+json", "application/strategic-merge-patch+json")


@dataclass(frozen=True)
class Change:
    """A PATCH of an object, or of its status (``place``)."""

    body: Tree
    content_type: str
    query: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.place} {self.content_type} {self.query} {self.body}"


def changes(body: Tree, status: Tree, rng: random.Random, count: int) -> Iterator[Change]:
    """Changes of an object that was created as ``body``. Half of them are dry runs."""
    identity = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    metadata = {"name": body["metadata"]["name"]}
    content = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    for _ in range(count):
        dry = rng.choice(("", "&dryRun=All"))
        match rng.randrange(4):
            case 0 | 1:
                parts = less(content, rng) if rng.random() < 0.7 else odd(content, rng)
                manager, force = rng.choice(("one", "two", "kubectl")), rng.choice(("", "&force=true"))
                yield Change(
                    {**identity, "metadata": metadata, **parts}, _APPLY, f"?fieldManager={manager}{force}{dry}"
                )
            case 2:
                labels = {} if rng.random() < 0.7 else {"metadata": {"labels": {"z": rng.choice(("1", None))}}}
                yield Change({**labels, **odd(content, rng)}, rng.choice(_MERGES), f"?fieldManager=two{dry}")
            case _:
                yield Change({"status": odd(status, rng)}, rng.choice(_MERGES), f"?fieldManager=two{dry}", "/status")


def less(value: Any, rng: random.Random) -> Any:
    """The value without some of its fields and items."""
    if isinstance(value, dict):
        return {key: less(item, rng) for key, item in value.items() if key in _IDENTITY or rng.random() < 0.75}
    if isinstance(value, list):
        return [less(item, rng) for item in value if rng.random() < 0.85]
    return value


def odd(value: Tree, rng: random.Random) -> Tree:
    """The same with nulls, and often one odd value: of several errors, upstream reports any first."""
    changed: Tree = _emptied(value, rng)
    places = [*_leaves(changed)]
    if places and rng.random() < 0.6:
        holder, key = rng.choice(places)
        holder[key] = rng.choice(_ODD)
    return changed


def _emptied(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if rng.random() < 0.8}
        return {key: _emptied(item, rng) if rng.random() < 0.9 else None for key, item in kept.items()}
    if isinstance(value, list):
        return [_emptied(item, rng) for item in value if rng.random() < 0.8]
    return value


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    """The places of all single values: what holds each, and its key."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(item, dict | list):
            yield from _leaves(item)
        else:
            yield value, key
