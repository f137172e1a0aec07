"""Records requests and their responses."""

from collections.abc import Callable
from datetime import datetime
from fnmatch import fnmatchcase

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked, Proceed
from kcm_cli.sandbox.apiserver.registry.responses import error_response
from kcm_cli.sandbox.apiserver.types import ApiError
from kcm_cli.serving.connection import Dropped

LOST = 0
"""The status of a request whose connection ended without a response."""


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request and its response. ``resource``: ``pods``, ``pods/status``, or empty; ``verb``: RBAC's.

    ``status``: of the response, 0 if the connection ended without one. ``answer``: its body, empty for watches.
    """

    time: datetime
    user: str
    user_agent: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    body: bytes
    status: int
    answer: bytes

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace and self.name else self.namespace or self.name
        what = " ".join(part for part in (self.verb, self.resource or self.path, name) if part)
        return f"{what}: {self.status or 'no answer'}"


class Recorder:
    """Calls ``keep`` with each matching request after its response (a watch when it begins).

    user, user_agent: patterns with ``*`` and ``?``; empty: all.
    """

    def __init__(
        self, clock: Clock, keep: Callable[[RecordedRequest], object], user: str = "", user_agent: str = ""
    ) -> None:
        self._clock = clock
        self._keep = keep
        self._user = user or "*"
        self._agent = user_agent or "*"

    async def intercept(self, asked: Asked, proceed: Proceed) -> Answer:
        """See ``entrance.Interceptor``."""
        if not (fnmatchcase(asked.user.name, self._user) and fnmatchcase(asked.user_agent, self._agent)):
            return await proceed(asked.request, None)
        try:
            answer = await proceed(asked.request, None)
        except ApiError as error:
            self._notify(asked, error_response(error))
            raise
        except Dropped:
            self._notify(asked, Response(LOST, {}, b""))
            raise
        self._notify(asked, answer)
        return answer

    def _notify(self, asked: Asked, answer: Answer) -> None:
        info, request = asked.info, asked.request
        body = answer.body if isinstance(answer, Response) else b""
        self._keep(
            RecordedRequest(
                time=self._clock.now(),
                user=asked.user.name,
                user_agent=asked.user_agent,
                method=request.method,
                path=request.path,
                query=request.query,
                verb=info.verb,
                group=info.group,
                resource=asked.resource,
                namespace=info.namespace,
                name=asked.name,
                body=request.body,
                status=answer.status,
                answer=body,
            )
        )
