"""Detects what a comparison of settled states does not show: entries that an operator removes and restores, and numbers
that go back.

The first happens to operators that write a complete object from what they have seen so far, which is not everything
after a restart.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.testing.perturb.states import ANY, State, shown

Entry = tuple[str, ...]
"""Where it is: keys, items of lists by their names or by what they are, at last perhaps a word of a text."""
_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,9})?%?")
_STATUS = "status"
"""It tells how far an operator is: one that starts anew may say so."""


class Taken:
    """The entries that the operator's writes remove and restore in a run. Objects are those of a ``State``."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, Entry], int] = {}

    def put_back(self, name: str, before: Any, after: Any, checkpoints: int) -> set[tuple[int, str, Entry]]:
        """The entries that this write restores, with the checkpoint before they were removed.

        Entries that another client restores do not count, such as a controller's annotation that a replacement omits.
        """
        lost, got = moved(before, after)
        again = {(self._since.pop((name, entry)), name, entry) for entry in got if (name, entry) in self._since}
        self._since |= {(name, entry): checkpoints for entry in lost}
        return again


def moved(before: Any, after: Any) -> tuple[Collection[Entry], Collection[Entry]]:
    """(entries that an object lost without a replacement, all entries that it gained)."""
    old, new = set(_entries(before, ())), set(_entries(after, ()))
    lost, got = old - new, new - old
    changed = {entry[:-1] for entry in got}
    return [entry for entry in lost if entry[:-1] not in changed and entry[:-1] not in lost], got


def entries(state: State, key: str) -> set[Entry]:
    """The entries of the object with that name; empty if there are several."""
    several = state.get(key)
    return set(_entries(several[0], ())) if isinstance(several, list) and len(several) == 1 else set()


def _entries(value: Any, path: Entry) -> Iterator[Entry]:
    parts: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        parts = ((name, one) for name, one in value.items() if one is not ANY and (path or name != _STATUS))
    elif isinstance(value, list):  # of one name there may be several, in any order
        parts = ((_name(one), one if isinstance(one, dict) else None) for one in value)
    elif isinstance(value, str):
        parts = ((word, None) for word in value.split())
    for name, one in parts:
        yield (*path, name)
        yield from _entries(one, (*path, name))


def _name(item: Any) -> str:
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        found: str = item["name"]
        return found
    return item if isinstance(item, str) else codec.encode_sorted(shown(item)).decode()


def numbers(doc: Any) -> dict[Entry, float]:
    """The numbers of an object outside of its status and of lists, also those in texts (``"50"``, ``"50%"``)."""
    return dict(_numbers(doc, ()))


def _numbers(value: Any, path: Entry) -> Iterator[tuple[Entry, float]]:
    if isinstance(value, dict):
        for name, one in value.items():
            if path or name != _STATUS:
                yield from _numbers(one, (*path, name))
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        yield path, float(value.removesuffix("%"))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def went_back(steps: Sequence[float], found: Sequence[float]) -> tuple[float, float] | None:
    """The first step backwards, if the reference has at least three numbers that only increase or only decrease."""
    if len(steps) < 3 or steps[1] == steps[0]:
        return None
    sign = 1 if steps[1] > steps[0] else -1
    if any((after - before) * sign <= 0 for before, after in pairwise(steps)):
        return None
    return next((pair for pair in pairwise(found) if (pair[1] - pair[0]) * sign < 0), None)
