"""Sends reviews to the API server, with retries and exponential backoff after transient errors.

upstream: staging/src/k8s.io/apiserver/pkg/util/webhook/webhook.go, plugin/pkg/authenticator/token/webhook,
plugin/pkg/authorizer/webhook
"""

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import text_of
from kcm_cli.machinery.meta import View
from kcm_cli.manager.server.metrics import ReviewMetrics
from kcm_cli.manager.server.user import AuthenticationError, User
from kcm_cli.rest import errors
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.reading import read
from kcm_cli.rest.transport import ConnectionLost, Request, RequestError

log = logging.getLogger(__name__)
T = TypeVar("T")

TOKEN_REVIEWS = GVR("authentication.k8s.io", "v1", "tokenreviews")
ACCESS_REVIEWS = GVR("authorization.k8s.io", "v1", "subjectaccessreviews")
TIMEOUT_S = 10.0
AT_ONCE = 8
"""Reviews of one kind. Each has a connection to the API server, which takes 300 KiB."""
_STEPS = 5
_FIRST_WAIT_S = 0.5
_FACTOR = 1.5
_JITTER = 0.2


class ReviewError(Exception):
    """The API server did not answer. The text is the last error."""


class Shared(Generic[T]):
    """Calls in progress. Concurrent ones with the same key are one, which ends when no caller waits for it."""

    def __init__(self) -> None:
        self._calls: dict[bytes, tuple[asyncio.Task[T], set[object]]] = {}

    async def call(self, key: bytes, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the call that is in progress, else of a new one."""
        if key not in self._calls:
            task = asyncio.get_running_loop().create_task(make())
            task.add_done_callback(lambda done: self._forget(key, done))
            self._calls[key] = task, set()
        task, waiting = self._calls[key]
        waiting.add(caller := object())
        try:
            return await asyncio.shield(task)
        finally:
            waiting.discard(caller)
            if not waiting and task.cancel():
                self._forget(key, task)  # the next caller begins anew

    def _forget(self, key: bytes, task: "asyncio.Task[T]") -> None:
        if key in self._calls and self._calls[key][0] is task:
            del self._calls[key]
        if task.done() and not task.cancelled():
            task.exception()  # those who waited have it; an unwatched one must not be reported at exit


class Reviewer:
    """Sends reviews of one kind, AT_ONCE at a time. A review times out after TIMEOUT_S, including retries and waiting
    for others."""

    def __init__(
        self, client: Client, reviews: GVR, kind: str, metrics: ReviewMetrics, clock: Clock, rng: random.Random
    ) -> None:
        self._client = client
        self._path = reviews.path()
        self._head: Doc = {"kind": kind, "apiVersion": reviews.group_version}
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._free = asyncio.Semaphore(AT_ONCE)

    async def ask(self, spec: Doc, type_: type[T]) -> T:
        """The review with its status. Raises ReviewError."""
        body = codec.encode({**self._head, "metadata": {}, "spec": spec, "status": {}})
        request = Request("POST", self._path, (), {"content-type": "application/json"}, body)
        try:
            async with asyncio.timeout(TIMEOUT_S), self._free:
                return read(await self._with_retries(request), type_)
        except (TimeoutError, RequestError) as error:
            why = text_of(error)
            log.error("Review failed", extra={"fields": {"path": self._path, "err": why}})
            raise ReviewError(why) from error

    async def _with_retries(self, request: Request) -> bytes:
        wait_s, step = _FIRST_WAIT_S, 1
        while True:
            try:
                return await self._once(request)
            except RequestError as error:
                if step == _STEPS or not _passing(error):
                    raise
            await self._clock.sleep(wait_s * (1.0 + self._rng.random() * _JITTER))
            wait_s *= _FACTOR
            step += 1

    async def _once(self, request: Request) -> bytes:
        start, code = self._clock.monotonic(), "<error>"
        try:
            response = await self._client.answer(request)
            code = str(response.status)
        finally:
            self._metrics.observe(code, self._clock.monotonic() - start)
        if 200 <= response.status < 300:
            return response.body
        raise errors.from_response(response, request)


class _ReviewedUser(View, frozen=True, gc=False):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _TokenStatus(View, frozen=True, gc=False):
    authenticated: bool = False
    user: _ReviewedUser = _ReviewedUser()
    error: str = ""


class _TokenReview(View, frozen=True, gc=False):
    status: _TokenStatus = _TokenStatus()


class Decision(View, frozen=True, gc=False):
    """The status of a SubjectAccessReview."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReview(View, frozen=True, gc=False):
    status: Decision = Decision()


async def review_token(reviewer: Reviewer, token: str) -> User | None:
    """The user of a token; None for an unknown token. Raises ReviewError, and AuthenticationError with a reason."""
    status = (await reviewer.ask({"token": token}, _TokenReview)).status
    if not status.authenticated:
        if status.error:
            raise AuthenticationError(status.error)
        return None
    user = status.user
    return User(user.username, user.uid, user.groups or (), user.extra or {})


def access_spec(user: User, verb: str, path: str) -> Doc:
    """The spec of a SubjectAccessReview for a non-resource path."""
    spec: Doc = {"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name}
    if user.groups:
        spec["groups"] = list(user.groups)
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}
    if user.uid:
        spec["uid"] = user.uid
    return spec


async def review_access(reviewer: Reviewer, spec: Doc) -> Decision:
    """Whether the access is allowed. Raises ReviewError."""
    return (await reviewer.ask(spec, _AccessReview)).status


def _passing(error: RequestError) -> bool:
    """Whether the error is transient."""
    if isinstance(error, ApiError):
        return error.status in (429, 500, 504) or error.retry_after_s is not None
    return isinstance(error, ConnectionLost)
