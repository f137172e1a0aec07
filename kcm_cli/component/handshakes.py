"""Schedules TLS handshakes, so that many at once do not hold the event loop.

A handshake costs CPU before the client is known: 0.3 ms with an EC P-256 key, 1 ms with an RSA key. Together they take
at most TURN_S of a turn of the loop; established connections are served in between.

Order: first handshakes that the client has continued, since they are nearly done. Among them, and then among the
others, the client addresses in turn. Of one address the newest and the oldest come alternately: under overload the
newest's client is still waiting, and none of many clients behind one address may wait for ever.
"""

import asyncio
import time
from typing import Protocol

TURN_S = 0.002


class Handshake(Protocol):
    """A handshake whose next step is the server's."""

    @property
    def address(self) -> str:
        """The client's address."""

    @property
    def answered(self) -> bool:
        """Whether the client has answered the server's first message."""

    def shake(self) -> None:
        """Continue until the next step is the client's."""


class Handshakes:
    """The handshakes of one loop. Each continues in a later turn than the one in which it was added."""

    def __init__(self, turn_s: float = TURN_S) -> None:
        self._turn_s = turn_s
        self._answered, self._begun = _Waiting(), _Waiting()
        self._scheduled = False

    def add(self, one: Handshake) -> None:
        """Queue a handshake that has received bytes. May be called again."""
        (self._answered if one.answered else self._begun).add(one)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def discard(self, one: Handshake) -> None:
        """Its connection is closed. May be called again."""
        self._answered.discard(one)
        self._begun.discard(one)

    def _turn(self) -> None:
        ends = time.perf_counter() + self._turn_s
        while (one := self._answered.take() or self._begun.take()) is not None:
            one.shake()
            if time.perf_counter() >= ends:
                break
        self._scheduled = bool(self._answered or self._begun)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._turn)


class _Waiting:
    """Handshakes by address, in order of arrival."""

    def __init__(self) -> None:
        self._addresses: dict[str, _Same] = {}

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def add(self, one: Handshake) -> None:
        if one.address not in self._addresses:
            self._addresses[one.address] = _Same()
        self._addresses[one.address].waiting[one] = None

    def discard(self, one: Handshake) -> None:
        same = self._addresses.get(one.address)
        if same is not None:
            same.waiting.pop(one, None)
            if not same.waiting:
                del self._addresses[one.address]

    def take(self) -> Handshake | None:
        """The next one of the next address, which goes behind the others."""
        if not self._addresses:
            return None
        address = next(iter(self._addresses))
        same = self._addresses.pop(address)
        one = same.take()
        if same.waiting:
            self._addresses[address] = same
        return one


class _Same:
    """The handshakes of one address."""

    def __init__(self) -> None:
        self.waiting: dict[Handshake, None] = {}
        self._oldest = False

    def take(self) -> Handshake:
        """The newest or the oldest, alternately."""
        one = next(iter(self.waiting)) if self._oldest else next(reversed(self.waiting))
        del self.waiting[one]
        self._oldest = not self._oldest
        return one
