"""Injects faults into requests. The choice of requests depends on the requests and a seed, not on time."""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Iterable
from typing import Protocol

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.integers import parse_int64
from kcm_cli.rest.transport import Request, discard
from kcm_cli.sandbox.apiserver.entrance import Answer, Asked, Proceed
from kcm_cli.sandbox.apiserver.entry.fault import Fault, Happening, happening
from kcm_cli.sandbox.apiserver.errors import conflict
from kcm_cli.sandbox.apiserver.types import ApiError
from kcm_cli.serving.connection import Dropped

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_OLD = ("", "0")
_KEPT = 10_000
_OUTDATED = "the object has been modified; please apply your changes to the latest version and try again"


class OpenWatch(Protocol):
    """An open watch: ``registry.watching.RunningWatch``."""

    asked: Asked

    def end(self, how: str) -> None:
        """End the watch: ``closed``, ``broken`` (the connection breaks) or ``expired`` (with a 410 event)."""

    def hold(self, revision: int | None) -> None:
        """Hold back the events after a revision; None: none."""


class Server(Protocol):
    """An ``ApiServer``."""

    def open_watches(self) -> Iterable[OpenWatch]: ...
    def revision(self) -> int: ...


class Injected:
    """An injected fault. hits: the number of requests that it has hit; happened: the last 10,000 of them, in order.
    ``since``: monotonic time."""

    def __init__(self, number: int, fault: Fault, since: float) -> None:
        self.number = number
        self.fault = fault
        self.hits = 0
        self.happened: deque[Happening] = deque(maxlen=_KEPT)
        self.starts = since + fault.start_s
        self.ends = self.starts + fault.for_s if fault.for_s else float("inf")
        self.revision = fault.revision
        self.rng = random.Random(f"{fault.seed}/{number}")
        self.timers: set[asyncio.TimerHandle] = set()
        self._met = 0

    def fires(self) -> bool:
        """Whether to hit the current request, one of those that it could hit. Counts it."""
        fault = self.fault
        self._met += 1
        count = self._met - fault.skip
        if count <= 0 or count % fault.every or (fault.times and self.hits >= fault.times):
            return False
        return fault.chance >= 1 or self.rng.random() < fault.chance


class Faults:
    """The faults of one server; see the module."""

    def __init__(self, server: Server, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._count = 0
        self.all: dict[int, Injected] = {}
        self._severed: set[str] = set()

    @property
    def any(self) -> bool:
        """Whether there are faults or severed tokens."""
        return bool(self.all or self._severed)

    def sever(self, token: str) -> None:
        """Break the watches and all later requests of a bearer token. This cannot be undone."""
        self._severed.add(token)
        for watch in list(self._server.open_watches()):
            if watch.asked.token == token:
                watch.end("broken")

    def add(self, fault: Fault) -> Injected:
        """Start a fault."""
        self._count += 1
        one = Injected(self._count, fault, self._clock.monotonic())
        self.all[one.number] = one
        if fault.start_s:
            one.timers.add(self._clock.call_later(fault.start_s, lambda: self._begin(one)))
        else:
            self._begin(one)
        if fault.for_s and fault.kind == "stale":
            one.timers.add(self._clock.call_later(fault.start_s + fault.for_s, self._hold_all))
        return one

    def remove(self, number: int) -> None:
        """End a fault, if it exists."""
        one = self.all.pop(number, None)
        if one is not None:
            for timer in one.timers:
                timer.cancel()
            if one.fault.kind == "stale":
                self._hold_all()

    def counts(self) -> dict[str, int]:
        """The number of hit requests by kind of fault."""
        counts: Counter[str] = Counter()
        for one in self.all.values():
            if one.hits:
                counts[one.fault.kind] += one.hits
        return dict(counts)

    def clear(self) -> None:
        """End all faults. Severed tokens remain severed."""
        for number in list(self.all):
            self.remove(number)

    async def intercept(self, asked: Asked, proceed: Proceed) -> Answer:
        """See ``entrance.Interceptor``."""
        lost, at = False, None
        if self._severed and asked.token in self._severed:
            raise Dropped(effect=False)
        for one in list(self.all.values()):
            kind = one.fault.kind
            if kind == "cut" or not self._active(one) or not one.fault.could_hit(asked):
                continue
            if kind == "stale":
                at = self._seen_at(one, asked)
            elif kind == "expire":
                self._expire(one, asked)
            elif one.fires():
                self._note(one, asked)
                if kind == "delay":
                    await self._clock.sleep(one.rng.uniform(*one.fault.delays))
                elif kind == "lose":
                    lost = True
                else:
                    raise _refusal(one.fault, asked)
        answer = await proceed(asked.request, at)
        if lost:
            await discard(answer)
            raise Dropped(effect=True)
        return answer

    def opened(self, watch: OpenWatch) -> None:
        """Apply faults to a watch that begins."""
        for one in list(self.all.values()):
            if self._active(one) and one.fault.could_hit(watch.asked):
                self._meet(one, watch)

    def _begin(self, one: Injected) -> None:
        if one.fault.kind == "stale":
            one.revision = one.revision or self._server.revision()
        for watch in list(self._server.open_watches()):
            if one.fault.could_hit(watch.asked):
                self._meet(one, watch, already=True)

    def _meet(self, one: Injected, watch: OpenWatch, *, already: bool = False) -> None:
        kind = one.fault.kind
        if kind == "stale":
            self._note(one, watch.asked)
            watch.hold(one.revision)
        elif kind == "away" and already:
            self._note(one, watch.asked)
            watch.end("broken")
        elif kind == "cut" and one.fires():
            self._cut(one, watch)
        elif kind == "expire" and (already or _is_older(watch.asked.request, one.fault.revision)) and one.fires():
            self._note(one, watch.asked)
            watch.end("expired")

    def _cut(self, one: Injected, watch: OpenWatch) -> None:
        how = "broken" if one.fault.broken else "closed"

        def end() -> None:
            self._note(one, watch.asked)
            watch.end(how)

        def in_time() -> None:
            one.timers.discard(timer)
            end()

        if one.fault.after_s:
            timer = self._clock.call_later(one.fault.after_s, in_time)
            one.timers.add(timer)
        else:
            end()

    def _expire(self, one: Injected, asked: Asked) -> None:
        """Raises ApiError 410 for a list with a continue token. Watches get it when they are open."""
        continues = any(key == "continue" and value for key, value in asked.request.query)
        if asked.info.verb == "list" and continues and one.fires():
            self._note(one, asked)
            raise ApiError(410, "Expired", "injected: the continue token is too old")

    def _seen_at(self, one: Injected, asked: Asked) -> int | None:
        version = _version(asked.request)
        old = version == "0" or (asked.info.verb == "watch" and version == "")
        if not old and not (one.fault.all_reads and version == ""):
            return None
        if asked.info.verb != "watch":
            self._note(one, asked)
        return one.revision

    def _hold_all(self) -> None:
        """Let watches proceed, unless another fault holds them."""
        stale = [one for one in self.all.values() if one.fault.kind == "stale" and self._active(one)]
        for watch in list(self._server.open_watches()):
            held = [one.revision for one in stale if one.fault.could_hit(watch.asked)]
            watch.hold(min(held) if held else None)

    def _active(self, one: Injected) -> bool:
        return one.starts <= self._clock.monotonic() < one.ends

    def _note(self, one: Injected, asked: Asked) -> None:
        one.hits += 1
        one.happened.append(happening(self._clock.now(), one.fault.kind, asked))


def _refusal(fault: Fault, asked: Asked) -> Exception:
    info = asked.info
    if fault.kind == "away":
        return Dropped(effect=False)
    if fault.kind == "conflict":
        return conflict(info.group, info.plural, asked.name, fault.message or _OUTDATED)
    if fault.kind == "throttle":
        status, message = 429, fault.message or "injected: too many requests, please try again later"
    else:
        status, message = fault.status, fault.message or f"injected: {_REASONS.get(fault.status, 'failure')}"
    details: dict[str, object] = {"kind": info.plural, "name": asked.name} if info.is_resource else {}
    if fault.kind == "throttle":
        details["retryAfterSeconds"] = fault.retry_after_s
    return ApiError(status, _REASONS.get(status, ""), message, details=details)


def _is_older(request: Request, revision: int) -> bool:
    """Whether a watch starts at a resourceVersion, before ``revision`` if that is not 0."""
    version = _version(request)
    return version not in _OLD and (not revision or (parse_int64(version) or revision) < revision)


def _version(request: Request) -> str:
    return next((value for key, value in request.query if key == "resourceVersion"), "")
