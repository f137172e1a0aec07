"""A transport that fails on purpose, the same way for the same seed.

For tests and simulations: it stands between a client and any other transport. Which requests fail is decided when
they are sent, by counting or by chance, so that a run on a deterministic loop can be replayed from its seed.

Outage    connections are refused for a span, and open watches break
throttle  429 with Retry-After, without effect
conflict  409 on a PUT or PATCH, without effect
lost      the write takes effect, its answer does not come
expire    410 to a watch or to a list with a continue token
cut       a watch ends after some time, in order or with a broken connection
latency   each request and the opening of each watch takes a moment longer
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import (
    ConnectionLost,
    Request,
    Response,
    Stream,
    TimedOut,
    Transport,
    Unreachable,
)

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_CHANGES = frozenset({"PUT", "PATCH"})


class Trigger(Protocol):
    """Decides whether a fault happens now."""

    def fires(self, rng: random.Random) -> bool:
        """Called once for each request that the fault could hit."""


class Never:
    """The fault does not happen."""

    def fires(self, rng: random.Random) -> bool:
        return False


class Every:
    """The fault hits each n-th request that it could hit."""

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self._count = 0

    def fires(self, rng: random.Random) -> bool:
        self._count += 1
        return self._count % self._nth == 0


class Chance:
    """The fault hits with a probability from 0 to 1."""

    def __init__(self, probability: float) -> None:
        self._probability = probability

    def fires(self, rng: random.Random) -> bool:
        return rng.random() < self._probability


NEVER = Never()


@dataclass(frozen=True, slots=True)
class Outage:
    """The server is away from ``start_s`` after the transport was made, for ``length_s``."""

    start_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong. Latency is drawn evenly between its two bounds; ``cut_s`` of 0 cuts no watch."""

    latency_s: tuple[float, float] = (0.0, 0.0)
    outages: tuple[Outage, ...] = ()
    throttle: Trigger = NEVER
    retry_after_s: int = 1
    conflict: Trigger = NEVER
    lost: Trigger = NEVER
    expire: Trigger = NEVER
    cut_s: float = 0.0
    cut_breaks: Trigger = NEVER


class FaultyTransport:
    """Passes requests on, except for those that fail. ``injected`` counts the faults by name."""

    def __init__(self, inner: Transport, faults: Faults, clock: Clock, rng: random.Random) -> None:
        self._inner = inner
        self._faults = faults
        self._clock = clock
        self._rng = rng
        self._start = clock.monotonic()
        self.injected: dict[str, int] = {}

    async def send(self, request: Request) -> Response:
        await self._delay()
        self._refuse(request)
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        lost = request.method in _WRITES and self._faults.lost.fires(self._rng)
        response = await self._inner.send(request)
        if lost:
            self._note("lost")
            raise TimedOut(f"{request.method} {request.path}: injected: no answer in time")
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        await self._delay()
        self._refuse(request)
        refusal = self._refusal(request)
        if refusal is not None:
            yield Stream(refusal.status, refusal.headers, _once(refusal.body))
            return
        breaks = self._faults.cut_breaks.fires(self._rng)
        opened = self._clock.monotonic()
        async with self._inner.stream(request) as stream:
            yield Stream(stream.status, stream.headers, self._until_cut(stream.chunks, opened, breaks))

    async def close(self) -> None:
        await self._inner.close()

    async def _until_cut(self, chunks: AsyncIterator[bytes], opened: float, breaks: bool) -> AsyncIterator[bytes]:
        outage = self._next_outage(opened)
        cut = opened + self._faults.cut_s if self._faults.cut_s > 0 else float("inf")
        while True:
            left = min(outage, cut) - self._clock.monotonic()
            try:
                async with asyncio.timeout(None if left == float("inf") else max(0.0, left)):
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                self._note("cut")
                if breaks or outage <= cut:
                    raise ConnectionLost("injected: watch broken") from None
                return
            yield chunk

    def _refuse(self, request: Request) -> None:
        """Raises Unreachable during an outage."""
        since = self._clock.monotonic() - self._start
        for outage in self._faults.outages:
            if outage.start_s <= since < outage.start_s + outage.length_s:
                self._note("outage")
                raise Unreachable(f"{request.method} {request.path}: injected: connection refused")

    def _next_outage(self, now: float) -> float:
        starts = (self._start + outage.start_s for outage in self._faults.outages)
        return min((start for start in starts if start > now), default=float("inf"))

    def _refusal(self, request: Request) -> Response | None:
        faults, rng = self._faults, self._rng
        if faults.throttle.fires(rng):
            self._note("throttle")
            return _failure(429, "TooManyRequests", retry_after_s=faults.retry_after_s)
        if request.method in _CHANGES and faults.conflict.fires(rng):
            self._note("conflict")
            return _failure(409, "Conflict")
        if _from_old_version(request) and faults.expire.fires(rng):
            self._note("expire")
            return _failure(410, "Expired")
        return None

    async def _delay(self) -> None:
        low, high = self._faults.latency_s
        if high > 0:
            await self._clock.sleep(self._rng.uniform(low, high))

    def _note(self, fault: str) -> None:
        self.injected[fault] = self.injected.get(fault, 0) + 1


def _from_old_version(request: Request) -> bool:
    query = dict(request.query)
    if "watch" in query:
        return query.get("resourceVersion", "") not in ("", "0")
    return "continue" in query


def _failure(code: int, reason: str, *, retry_after_s: int = 0) -> Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected: {reason}",
        "reason": reason,
        "code": code,
    }
    headers = {"content-type": "application/json"}
    if retry_after_s:
        status["details"] = {"retryAfterSeconds": retry_after_s}
        headers["retry-after"] = str(retry_after_s)
    return Response(code, headers, codec.encode(status))


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
