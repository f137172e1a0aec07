"""Entries that an operator takes away and puts back: whoever compares what has settled does not see it.

It happens to those that write a whole from what they have seen so far, which after a restart is not all.
"""

from collections.abc import Collection, Iterator
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.testing.perturb.states import ANY, State, shown

Entry = tuple[str, ...]
"""Where it is: keys, items of lists by their names or by what they are, at last perhaps a word of a text."""
_STATUS = "status"
"""It tells how far an operator is: one that starts anew may say so."""


def taken(before: Any, after: Any) -> Collection[Entry]:
    """What an object, plain as in a ``State``, has lost of a dict, list or text that has got nothing else instead."""
    old, new = set(_entries(before, ())), set(_entries(after, ()))
    lost, changed = old - new, {entry[:-1] for entry in new - old}
    return [entry for entry in lost if entry[:-1] not in changed and entry[:-1] not in lost]


def has(state: State, key: str, entry: Entry) -> bool:
    """Whether the one object of that name has to have an entry there."""
    several = state.get(key)
    return isinstance(several, list) and len(several) == 1 and entry in set(_entries(several[0], ()))


def _entries(value: Any, path: Entry) -> Iterator[Entry]:
    if isinstance(value, dict):
        parts = {name: one for name, one in value.items() if one is not ANY and (path or name != _STATUS)}
    elif isinstance(value, list):
        parts = {_name(one): one if isinstance(one, dict) else None for one in value}
    else:
        parts = dict.fromkeys(value.split()) if isinstance(value, str) else {}
    for name, one in parts.items():
        yield (*path, name)
        yield from _entries(one, (*path, name))


def _name(item: Any) -> str:
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        found: str = item["name"]
        return found
    return item if isinstance(item, str) else codec.encode_sorted(shown(item)).decode()
