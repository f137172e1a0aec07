"""A transport for reads: no write and no exec can be sent."""

from contextlib import AbstractAsyncContextManager

from kcm_cli.rest.transport import Around, Request, Response, Stream, TransportError

_VERSIONED = {"api": 2, "apis": 3}
"""How many parts of a path name the API group and version."""


class NotReadOnly(TransportError):
    """A request other than get, list or watch. It was not sent."""


class ReadOnly(Around):
    """Implements ``rest.transport.Transport`` for get, list and watch of resources, and discovery."""

    async def send(self, request: Request) -> Response:
        """Raises NotReadOnly and other TransportErrors."""
        _check(request)
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Raises NotReadOnly and other TransportErrors."""
        _check(request)
        return self._inner.stream(request)


def _check(request: Request) -> None:
    if request.method != "GET" or request.body or not _looks(request.path):
        raise NotReadOnly(f"{request.method} {request.path} was not sent: only reads are allowed")


def _looks(path: str) -> bool:
    """Whether GET of a path is discovery, get, list or watch. Subresources are not: exec and proxy are GETs, too."""
    parts = [part for part in path.split("/") if part]
    if parts == ["version"]:
        return True
    skip = _VERSIONED.get(parts[0]) if parts else None
    if skip is None:
        return False
    rest = parts[skip:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return len(rest) <= 2 and rest[:1] not in (["secrets"], ["proxy"], ["watch"])
