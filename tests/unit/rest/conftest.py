"""A transport with scripted responses, and clients on virtual time."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Limiter, Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, TransportError

JSON_HEADERS = {"content-type": "application/json"}


def answer(status: int, doc: object, **headers: str) -> Response:
    """A JSON answer; header names are given with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, {**JSON_HEADERS, **named}, json.dumps(doc).encode())


def failure(code: int, reason: str, **headers: str) -> Response:
    doc = {"kind": "Status", "status": "Failure", "message": f"because {reason}", "reason": reason, "code": code}
    return answer(code, doc, **headers)


Step = Response | TransportError | Callable[[Request], Response]


@dataclass
class Script:
    """Returns responses in order, then repeats the last one. ``asked`` and ``times`` record the requests."""

    steps: list[Step]
    asked: list[Request] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    closed: bool = False

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        self.times.append(LoopClock().monotonic())
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, TransportError):
            raise step
        return step if isinstance(step, Response) else step(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        response = await self.send(request)

        async def chunks() -> AsyncIterator[bytes]:
            for line in response.body.splitlines(keepends=True):
                yield line

        yield Stream(response.status, response.headers, chunks())

    async def close(self) -> None:
        self.closed = True

    def client(self, limiter: Limiter | None = None) -> Client:
        return Client(self, limiter=limiter or Unlimited(), user_agent="kcm/test", clock=LoopClock())


@pytest.fixture
def script() -> Callable[..., Script]:
    return lambda *steps: Script(list(steps))


@pytest.fixture(name="answer")
def answer_fixture() -> Callable[..., Response]:
    return answer


@pytest.fixture(name="failure")
def failure_fixture() -> Callable[..., Response]:
    return failure
