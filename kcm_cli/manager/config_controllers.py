"""The meaning of --controllers: which controllers run.

upstream: staging/src/k8s.io/controller-manager/options/generic.go, cmd/kube-controller-manager/app
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Protocol

import msgspec


class Named(Protocol):
    """The fields of a controller's descriptor that are used here."""

    @property
    def name(self) -> str: ...
    @property
    def alias(self) -> str: ...
    @property
    def default_enabled(self) -> bool: ...


class KnownControllers(msgspec.Struct, frozen=True):
    """The names of all controllers, those that are off by default, and the names by their aliases."""

    names: tuple[str, ...] = ()
    off_by_default: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = msgspec.field(default_factory=dict)


def known_of(descriptors: Iterable[Named]) -> KnownControllers:
    """The names in these descriptors."""
    all_of = tuple(descriptors)
    return KnownControllers(
        tuple(d.name for d in all_of),
        frozenset(d.name for d in all_of if not d.default_enabled),
        {d.alias: d.name for d in all_of if d.alias},
    )


def canonical(selection: Iterable[str], known: KnownControllers) -> tuple[str, ...]:
    """The selection with aliases replaced by names."""
    return tuple(_canonical(item, known) for item in selection)


def _canonical(item: str, known: KnownControllers) -> str:
    sign, name = ("-", item[1:]) if item.startswith("-") else ("", item)
    return sign + known.aliases.get(name, name)


def unknown(selection: Iterable[str], known: KnownControllers) -> list[str]:
    """One line for each item that names no controller."""
    found = []
    for item in selection:
        name = item.removeprefix("-")
        if item != "*" and known.aliases.get(name, name) not in known.names:
            near = get_close_matches(name, [*known.names, *known.aliases], n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            found.append(f'"{name}" is not in the list of known controllers{hint}')
    return found


def is_enabled(name: str, selection: Sequence[str], *, off_by_default: bool) -> bool:
    """Whether a controller runs. The first of ``name`` and ``-name`` decides, else ``*`` and the default.

    The selection has names, not aliases.
    """
    for item in selection:
        if item == name:
            return True
        if item == "-" + name:
            return False
    return "*" in selection and not off_by_default


def selected(selection: Sequence[str], known: KnownControllers) -> tuple[str, ...]:
    """The controllers that run, in the map's order."""
    off = known.off_by_default
    return tuple(name for name in known.names if is_enabled(name, selection, off_by_default=name in off))
