"""Words that differ from run to run, but are the same in several places: uids, generated names, passwords.

A run without perturbation has them anew each time, so their values tell nothing; that two places agree does.
"""

import re
from base64 import b64decode
from binascii import Error
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.snapshots import NODES, Snapshot
from kcm_cli.testing.perturb.states import PLACED, TIME, UNCOMPARED, changed

Words = Mapping[str, Sequence[str]]
"""Words by the place where they are: ``widgets.example.com web status.child``."""
Ties = Sequence[Sequence[tuple[str, int]]]
"""Groups of places, each with the number of its word, that have the same word."""
_WORD = re.compile(r"[0-9A-Za-z_-]{6,}")
_COUNTED = re.compile(r"[\dTZ_-]+")
"""Counters and times of other forms: they may differ by when something was done."""


def words_of(store: Store, base: Snapshot, namespace: str, *, uncompared: Collection[str] = UNCOMPARED) -> Words:
    """The words of all that has changed since a snapshot and has a name of its own, as ``states.state_of`` has it."""
    found: dict[str, list[Any]] = defaultdict(list)
    for name, doc in changed(store, base, namespace, uncompared):
        found[name].append(doc)
    nodes = {stored.name for stored in store.list(NODES)}
    words: dict[str, Sequence[str]] = {}
    for name, docs in found.items():
        for path, text in _texts(docs[0], "") if len(docs) == 1 else ():
            text = TIME.sub("", text.replace(namespace, "") if namespace else text)
            several = [word for word in _WORD.findall(text) if word not in nodes and not _COUNTED.fullmatch(word)]
            words[f"{name} {path}"] = several
    return words


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each text of an object with its path; values of Secrets as they were before they were encoded."""
    if isinstance(value, dict):
        secret = path == "" and value.get("kind") == "Secret"
        for key, one in value.items():
            if key in PLACED or key == "managedFields":
                continue
            if secret and key == "data" and isinstance(one, dict):
                one = {name: _decoded(text) for name, text in one.items()}
            yield from _texts(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _texts(one, f"{path}.{index}")
    elif isinstance(value, str):
        yield path, value


def _decoded(text: Any) -> Any:
    try:
        return b64decode(text, validate=True).decode()
    except (Error, TypeError, ValueError):
        return text


def ties_of(first: Words, second: Words) -> Ties:
    """Which places agree in both runs, on words that only one of the runs has."""
    groups: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    here, there = ({word for words in one.values() for word in words} for one in (first, second))
    for place in sorted(first.keys() & second.keys()):
        if len(first[place]) == len(second[place]):
            for index, pair in enumerate(zip(first[place], second[place], strict=True)):
                if pair[0] not in there and pair[1] not in here:
                    groups[pair].append((place, index))
    return [group for group in groups.values() if len(group) > 1]


def untied(ties: Ties, words: Words) -> Iterator[str]:
    """Messages for values that should be equal and are not. Missing places are reported by ``states.differences``."""
    for group in ties:
        found = [(place, words[place][index]) for place, index in group if len(words.get(place, ())) > index]
        for place, word in found[1:]:
            if word != found[0][1]:
                yield f"{place} has {word!r} where {found[0][0]} has {found[0][1]!r}: they should agree"
                break
