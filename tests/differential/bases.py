"""The objects that are varied: rich ones of every kind, and what must be there before them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from tests.differential.variations import ABSENT, Tree

FOLDER = Path(__file__).parent / "objects"


@dataclass(frozen=True)
class Base:
    """An object in YAML. ``also``, ``updates``, ``statuses``: changes that are tried beside the variations, at
    creation, in updates and of the status. ``setup``, ``then``, ``cleanup``: requests before it is created, after
    that, and at the end. ``wait``: seconds until a server has acted on it. ``fixed``: its name must stay."""

    name: str
    path: str
    body: Tree
    also: tuple[Tree, ...] = ()
    updates: tuple[Tree, ...] = ()
    statuses: tuple[Tree, ...] = ()
    status: Any = None
    setup: tuple[Tree, ...] = ()
    then: tuple[Tree, ...] = ()
    cleanup: tuple[Tree, ...] = ()
    wait: float = 0.0
    skip: tuple[str, ...] = ()
    fixed: bool = False
    meta: bool = False

    @property
    def kind(self) -> str:
        return str(self.body["kind"])

    @property
    def untouched(self) -> tuple[str, ...]:
        """Places that are not varied."""
        return self.skip if self.meta else ("metadata", "kind", "apiVersion", *self.skip)


class _Loader(yaml.CSafeLoader):
    """YAML in which ``!absent ''`` removes a field."""


_Loader.add_constructor("!absent", lambda loader, node: ABSENT)


def load(patterns: tuple[str, ...] = ("*",)) -> Iterator[Base]:
    """The bases whose name (``core/secret``) matches one of the patterns."""
    for file in sorted(FOLDER.glob("*.yaml")):
        docs = [doc for doc in yaml.load_all(file.read_text(), _Loader) if doc is not None]
        for index, doc in enumerate(docs):
            name = f"{file.stem}/{doc.pop('name', index)}"
            if any(fnmatch(name, pattern) for pattern in patterns):
                yield Base(name, **{key: _frozen(part) for key, part in doc.items()})


def _frozen(part: object) -> Any:
    return tuple(part) if isinstance(part, list) else part


def changed(doc: Any, change: Any) -> Any:
    """The document with a change merged into it: objects by field, all else in whole."""
    if not (isinstance(doc, Mapping) and isinstance(change, Mapping)):
        return change
    merged = {**doc, **{key: changed(doc.get(key), one) for key, one in change.items()}}
    return {key: one for key, one in merged.items() if one is not ABSENT}
