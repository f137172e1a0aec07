"""Authenticated requests, interceptors between them and the server, and observers of what was answered."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from kcm_cli.api.protobuf.decoding import to_json
from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.machinery.envelope import MAGIC
from kcm_cli.machinery.errors import FormatError
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.types import RequestInfo, User

Answer = Response | Stream
Proceed = Callable[[Request, int | None], Awaitable[Answer]]
"""Handles a request. The int: the revision that reads show; None: the latest."""


class Asked(msgspec.Struct, frozen=True):
    """A received request. ``user``: the authenticated one, not an impersonated one."""

    user: User
    request: Request
    info: RequestInfo

    @property
    def user_agent(self) -> str:
        return self.request.headers.get("user-agent", "")

    @property
    def token(self) -> str:
        """The bearer token, or empty."""
        scheme, _, token = self.request.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def resource(self) -> str:
        """``pods``, ``pods/status``; empty for nonResourceURLs."""
        return self.info.resource

    @property
    def name(self) -> str:
        """The object's name. For a create, the name or generateName in the body."""
        return self.info.name or (_name_in(self.request.body) if self.info.verb == "create" else "")

    def is_of(self, patterns: tuple[str, ...]) -> bool:
        """Whether its resource matches a pattern: ``pods``, ``pods/status``, ``deployments.apps``, ``*``."""
        resource, group = self.resource, self.info.group
        named = f"{self.info.plural}.{group}{resource.removeprefix(self.info.plural)}" if group else resource
        return any(fnmatchcase(resource, one) or fnmatchcase(named, one) for one in patterns)


Interceptor = Callable[[Asked, Proceed], Awaitable[Answer]]
"""Returns a response or calls ``Proceed``. Raises ApiError, Dropped."""


class Exchange(msgspec.Struct, kw_only=True):
    """A request that reached the server, with its answer once there is one.

    received, at: when; at: monotonic seconds. user: the one that it acts as, which may be an impersonated one. allowed:
    the authorizer's decision; None before it. reason: the authorizer's. writes: the objects that it has written, each
    with its resource.
    """

    asked: Asked
    received: datetime
    at: float
    user: User
    allowed: bool | None = None
    reason: str = ""
    answer: Answer | None = None
    writes: list[tuple[GVR, Event]] = msgspec.field(default_factory=list)

    @property
    def is_impersonated(self) -> bool:
        return self.user is not self.asked.user


Observer = Callable[[Exchange], None]
"""Called with each request that was answered. It must not raise."""
_EXCHANGE: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


def current_exchange() -> Exchange | None:
    """The request that this task handles; None without observers."""
    return _EXCHANGE.get()


@contextmanager
def exchanging(exchange: Exchange) -> Iterator[None]:
    """Within this block, this task handles the request."""
    token = _EXCHANGE.set(exchange)
    try:
        yield
    finally:
        _EXCHANGE.reset(token)


def as_json(body: bytes) -> bytes:
    """A body in protobuf as JSON. Other bodies, and those that cannot be decoded, are not changed."""
    if not body.startswith(MAGIC):
        return body
    try:
        return to_json(body)
    except FormatError:
        return body


def _name_in(body: bytes) -> str:
    try:
        doc: Any = codec.decode_doc(as_json(body))
        return str(doc["metadata"].get("name") or doc["metadata"].get("generateName", ""))
    except (codec.DecodeError, LookupError, AttributeError, TypeError):
        return ""
