"""Violations and their texts."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from kcm_cli.sandbox.apiserver.types import Tree


class Finding(msgspec.Struct, frozen=True):
    """A violation of a rule."""

    reason: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check = Callable[[Tree, Tree], Finding | None]
"""Checks the metadata and the spec of a pod."""


def containers_of(spec: Tree) -> Iterator[Tree]:
    """All containers, in the order of violations."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def context_of(holder: Tree) -> Tree:
    """The security context of a pod's spec or of a container."""
    return holder.get("securityContext") or {}


def chosen(spec: Tree, wrong: Callable[[Tree], object]) -> list[str]:
    """The names of the containers for whose security context ``wrong`` is true."""
    return [each["name"] for each in containers_of(spec) if wrong(context_of(each))]


def listed(items: Iterable[str]) -> str:
    """``"a", "b"``."""
    return ", ".join(f'"{item}"' for item in items)


def counted(word: str, count: int) -> str:
    """``container`` or ``containers``."""
    return word if count == 1 else f"{word}s"


def plural(word: str, items: list[str]) -> str:
    """``containers "a", "b"``."""
    return f"{counted(word, len(items))} {listed(items)}"


def setters(pod: bool, containers: list[str]) -> str:
    """``pod and container "a"``; empty without either."""
    parts = ["pod"] if pod else []
    if containers:
        parts.append(plural("container", containers))
    return " and ".join(parts)
