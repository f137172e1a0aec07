"""Words that differ in every run, but are equal in several places: uids, generated names, passwords.

Their values mean nothing, but their equality does.
"""

import re
from base64 import b64decode
from binascii import Error
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.snapshots import NODES, Snapshot
from kcm_cli.testing.perturb.host import OPERATORS, Measure
from kcm_cli.testing.perturb.states import NONE_GENERATED, PLACED, TIME, Generated, changed

Words = Mapping[str, Sequence[str]]
"""Words by the place where they are: ``widgets.example.com web status.child``. Behind ``* `` those of which there are
several in an order that tells nothing: of a list (``* widgets.example.com web status.children.*``), of a text that is
one, of objects with generated names."""
Ties = Sequence[Sequence[tuple[str, int]]]
"""Groups of places, each with the number of its word, that have the same word."""
_SEVERAL = "* "
_WORD = re.compile(r"[0-9A-Za-z_-]{6,}")
_LISTED = re.compile(r"[\w.-]+(?:[\s,;]+[\w.-]+)+")
"""A text that is a list of words."""
_COUNTED = re.compile(r"[\dTZ_-]+")
"""Counters and times of other forms: they may differ by when something was done."""


def words_of(
    store: Store,
    base: Snapshot,
    namespace: str,
    *,
    measure: Measure = OPERATORS,
    generated: Generated = NONE_GENERATED,
) -> Words:
    """The words of all objects that changed since a snapshot, by their names in ``states.state_of``."""
    found: dict[str, list[Any]] = defaultdict(list)
    for name, doc in changed(store, base, namespace, measure.uncompared, generated):
        found[name].append(doc)
    nodes = {stored.name for stored in store.list(NODES)}
    words: dict[str, list[str]] = defaultdict(list)
    for name, docs in found.items():
        for path, kind, text in (one for doc in docs for one in _texts(doc, "", "")):
            text = TIME.sub("", text.replace(namespace, "") if namespace else text)
            several = [word for word in _WORD.findall(text) if word not in nodes and not _COUNTED.fullmatch(word)]
            if len(docs) == 1:
                words[f"{name} {path}"] = several
            if len(docs) > 1 or kind != path or _LISTED.fullmatch(text.strip()):
                words[f"{_SEVERAL}{name} {kind}"] += several
    return words


def _texts(value: Any, path: str, kind: str) -> Iterator[tuple[str, str, str]]:
    """(path, kind, text) of each string in an object. Values of Secrets are decoded.

    kind: the path with ``*`` for each index in a list whose items have no names.
    """
    if isinstance(value, dict):
        secret = path == "" and value.get("kind") == "Secret"
        for key, one in value.items():
            if key in PLACED or key == "managedFields":
                continue
            if secret and key == "data" and isinstance(one, dict):
                one = {name: _decoded(text) for name, text in one.items()}
            yield from _texts(one, f"{path}.{key}" if path else key, f"{kind}.{key}" if path else key)
    elif isinstance(value, list):
        named = len(value) == 1 or all(isinstance(one, dict) and "name" in one for one in value)
        for index, one in enumerate(value):
            yield from _texts(one, f"{path}.{index}", f"{kind}.{index if named else '*'}")
    elif isinstance(value, str):
        yield path, kind, value


def _decoded(text: Any) -> Any:
    try:
        return b64decode(text, validate=True).decode()
    except (Error, TypeError, ValueError):
        return text


def ties_of(first: Words, second: Words) -> Ties:
    """The places that agree in both runs, on words that are specific to a run and unambiguous."""
    groups: dict[tuple[str, str], list[tuple[str, int]]] = defaultdict(list)
    here, there = ({word for words in one.values() for word in words} for one in (first, second))
    free = here - there - _alternatives(first, there), there - here - _alternatives(second, here)
    for place in sorted(first.keys() & second.keys()):
        if len(first[place]) == len(second[place]) and not place.startswith(_SEVERAL):
            for index, pair in enumerate(zip(first[place], second[place], strict=True)):
                if pair[0] in free[0] and pair[1] in free[1]:
                    groups[pair].append((place, index))
    return [group for group in groups.values() if len(group) > 1]


def _alternatives(words: Words, known: Collection[str]) -> set[str]:
    """Words that may be exchanged in another run. known: the words of another run."""
    found: set[str] = set()
    for place, several in words.items():
        if place.startswith(_SEVERAL) and len(chosen := {word for word in several if word not in known}) > 1:
            found |= chosen
    return found


def untied(ties: Ties, words: Words) -> Iterator[str]:
    """Messages about values that should be equal. ``states.differences`` reports missing places."""
    for group in ties:
        found = [(place, words[place][index]) for place, index in group if len(words.get(place, ())) > index]
        for place, word in found[1:]:
            if word != found[0][1]:
                yield f"{place} has {word!r} where {found[0][0]} has {found[0][1]!r}: they should agree"
                break
