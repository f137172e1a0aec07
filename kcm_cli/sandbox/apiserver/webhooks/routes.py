"""Routes: the addresses of the servers behind Services, since nothing runs in a sandbox's pods."""

import re
from collections.abc import Callable

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Tree

ANNOTATION = "sandbox.kcm.dev/route"
"""An annotation of Services: a local ``PORT``, or ``HOST:PORT``."""
_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SERVICE = re.compile(rf"({_LABEL})\.({_LABEL})")
_WHERE = re.compile(r"(?:(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]/@]+):)?([0-9]{1,5})")
_LOCAL = "127.0.0.1"

Key = tuple[str, str]
"""Namespace and name of a Service."""
Where = tuple[str, int]
"""Host and port."""


class Routes:
    """The routes of a sandbox: added ones, and annotations of Services. ``changed``: called after ``add``."""

    def __init__(self) -> None:
        self.changed: list[Callable[[], None]] = []
        self._given: dict[Key, Where] = {}

    def add(self, service: str, to: int | str) -> None:
        """Route calls of ``name.namespace`` to a local ``PORT`` or to ``HOST:PORT``. Replaces the Service's previous
        route. Raises ValueError.
        """
        self._given[service_of(service)] = where_of(to)
        for notify in self.changed:
            notify()

    def of(self, key: Key, service: Tree | None) -> Where | None:
        """The route of a Service, or None. ``service``: its object. Raises ValueError for an invalid annotation."""
        if (given := self._given.get(key)) is not None:
            return given
        text = annotated(service) if service is not None else None
        return None if text is None else where_of(text)


def annotated(service: Tree) -> str | None:
    """The value of a Service's annotation, or None."""
    text: str | None = (service["metadata"].get("annotations") or {}).get(ANNOTATION)
    return text


def service_of(text: str) -> Key:
    """``name.namespace`` as namespace and name. Raises ValueError."""
    found = _SERVICE.fullmatch(text)
    if found is None:
        raise ValueError(f"{quote(text)} does not name a Service: write NAME.NAMESPACE")
    return found[2], found[1]


def where_of(to: int | str) -> Where:
    """``PORT`` or ``HOST:PORT`` (``[IPv6]:PORT``) as host and port. Raises ValueError."""
    found = _WHERE.fullmatch(str(to))
    if found is None or not 0 < int(found[2]) < 65536:
        raise ValueError(f"{quote(str(to))} is no address: write PORT or HOST:PORT")
    return (found[1] or _LOCAL).strip("[]"), int(found[2])
