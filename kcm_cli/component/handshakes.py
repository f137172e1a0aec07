"""Schedules TLS handshakes, so that many at once do not hold the event loop.

A handshake costs CPU before the client is known: 0.3 ms with an EC P-256 key, 1 ms with an RSA key. Together they take
at most TURN_S of a turn of the loop; established connections are served in between.

Order: first handshakes that the client has continued, since they cost least and are nearly done; then the client
addresses in turn. Of one address the newest and the oldest come alternately: under overload the newest's client is
still waiting, and none of many clients behind one address may wait for ever.
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
        self._answered: dict[Handshake, None] = {}
        self._begun: dict[str, _Begun] = {}
        self._scheduled = False

    def add(self, one: Handshake) -> None:
        """Queue a handshake that has received bytes. May be called again."""
        if one.answered:
            self._answered[one] = None
        else:
            if one.address not in self._begun:
                self._begun[one.address] = _Begun()
            self._begun[one.address].waiting[one] = None
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def discard(self, one: Handshake) -> None:
        """Its connection is closed. May be called again."""
        self._answered.pop(one, None)
        same = self._begun.get(one.address)
        if same is not None:
            same.waiting.pop(one, None)
            if not same.waiting:
                del self._begun[one.address]

    def _turn(self) -> None:
        ends = time.perf_counter() + self._turn_s
        while (one := self._next()) is not None:
            one.shake()
            if time.perf_counter() >= ends:
                break
        self._scheduled = bool(self._answered or self._begun)
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._turn)

    def _next(self) -> Handshake | None:
        if self._answered:
            one = next(iter(self._answered))
            del self._answered[one]
            return one
        if not self._begun:
            return None
        address = next(iter(self._begun))
        same = self._begun.pop(address)
        one = same.next()
        if same.waiting:
            self._begun[address] = same  # behind the others
        return one


class _Begun:
    """The handshakes of one address, in order of arrival."""

    def __init__(self) -> None:
        self.waiting: dict[Handshake, None] = {}
        self._oldest = False

    def next(self) -> Handshake:
        """Take the newest or the oldest, alternately."""
        one = next(iter(self.waiting)) if self._oldest else next(reversed(self.waiting))
        del self.waiting[one]
        self._oldest = not self._oldest
        return one
