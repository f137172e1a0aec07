"""A request and its response, as an ASGI application receives and sends them."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qs
from wsgiref.headers import Headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Request:
    """``query``: all values of each parameter. ``state``: what the server knows of the connection."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query_string: str = scope["query_string"].decode("latin-1")
        self.query = parse_qs(self.query_string, keep_blank_values=True)
        self.headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
        self.state: Mapping[str, object] = scope.get("state", {})
        self._receive = receive

    def first(self, parameter: str) -> str:
        """The first value of a query parameter; empty if there is none."""
        return self.query.get(parameter, ("",))[0]

    async def body(self) -> bytes:
        """The whole body, which the server limits, or what arrived before the client left."""
        parts, more = [], True
        while more:
            message = await self._receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        return b"".join(parts)


class Response:
    """``headers``: names in lower case. Content-Length is added."""

    def __init__(self, body: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.body = body.encode() if isinstance(body, str) else body
        self.status = status
        self.headers = dict(headers or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"content-length": str(len(self.body)), **self.headers}
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": fields})
        await send({"type": "http.response.body", "body": self.body})
