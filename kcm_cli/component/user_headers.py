"""Headers that name users: those of authenticating proxies.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go
"""

from collections.abc import Iterable

import msgspec

from kcm_cli.component.client_certificates import Identity
from kcm_cli.machinery.urls import path_unescaped


class ProxyHeaders(msgspec.Struct, frozen=True):
    """The headers with the user, and the common names of proxies that may send them (empty: all)."""

    names: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    def identity(self, headers: Iterable[tuple[str, str]]) -> Identity | None:
        """The user in headers, as pairs of a name in lower case and a value, read as Latin-1; None if there is none."""
        given = [(key, decoded(value)) for key, value in headers]
        values: dict[str, list[str]] = {}
        for key, value in given:
            values.setdefault(key, []).append(value)
        name = _first(values, self.names)
        if not name:
            return None
        groups = tuple(value for header in self.groups for value in values.get(header.lower(), ()) if value)
        extra: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_prefixes:
            for key, value in given:
                if key.startswith(prefix.lower()):
                    key = path_unescaped(key[len(prefix) :])
                    extra[key] = (*extra.get(key, ()), value)
        return Identity(name, _first(values, self.uids), groups, extra)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The headers and prefixes, in lower case."""
        return tuple(one.lower() for one in (*self.names, *self.uids, *self.groups, *self.extra_prefixes))

    def has(self, header: str) -> bool:
        """Whether a header, in lower case, is one of those that name a user."""
        named = (*self.names, *self.uids, *self.groups)
        return any(header == one.lower() for one in named) or any(
            header.startswith(prefix.lower()) for prefix in self.extra_prefixes
        )


STANDARD = ProxyHeaders(("x-remote-user",), ("x-remote-uid",), ("x-remote-group",), ("x-remote-extra-",))
"""Those that API servers send to aggregated ones, and pass on to no one else."""


def decoded(value: str) -> str:
    """A header that was read as Latin-1, as UTF-8."""
    return value if value.isascii() else value.encode("latin-1", "replace").decode("utf-8", "replace")


def _first(values: dict[str, list[str]], names: tuple[str, ...]) -> str:
    found = (values[name.lower()][0] for name in names if name.lower() in values)
    return next((value for value in found if value), "")
