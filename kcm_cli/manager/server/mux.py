"""Maps paths to handlers: exact paths first, then the longest prefix; any method. Paths may be added while the server
runs.

upstream: staging/src/k8s.io/apiserver/pkg/server/mux/pathrecorder.go
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kcm_cli.manager.server import responses

Handler = Callable[[Request], Awaitable[Response]]


class Mux:
    """An ASGI application. Handlers may be added on another thread: the tables are replaced, not modified."""

    def __init__(self) -> None:
        self._exact: Mapping[str, Handler] = MappingProxyType({})
        self._prefixes: tuple[tuple[str, Handler], ...] = ()
        self._listed: tuple[str, ...] = ()

    @property
    def listed(self) -> tuple[str, ...]:
        """The paths that the index lists, sorted."""
        return tuple(sorted(self._listed))

    def handle(self, path: str, handler: Handler, *, listed: bool = True) -> None:
        """Serve this path. Raises ValueError if it is served already."""
        if path in self._exact:
            raise ValueError(f"path {path} is served already")
        self._exact = MappingProxyType({**self._exact, path: handler})
        if listed:
            self._listed = (*self._listed, path)

    def handle_prefix(self, prefix: str, handler: Handler) -> None:
        """Serve every path below a prefix that ends in a slash. Prefixes are not listed."""
        if not prefix.endswith("/"):
            raise ValueError(f"prefix {prefix} must end in a slash")
        pairs = (*self._prefixes, (prefix, handler))
        self._prefixes = tuple(sorted(pairs, key=lambda pair: (-pair[0].count("/"), -len(pair[0]), pair[0])))

    def find(self, path: str) -> Handler | None:
        """The handler of a path, or None."""
        exact = self._exact.get(path)
        if exact is not None:
            return exact
        return next((handler for prefix, handler in self._prefixes if path.startswith(prefix)), None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        handler = self.find(responses.path_of(request))
        response = responses.not_found() if handler is None else await handler(request)
        await response(scope, receive, send)
