"""Schedules what clients ask for before they are known, so that many at once do not hold the event loop.

A TLS handshake costs 0.3 ms of CPU with an EC P-256 key, 1 ms with an RSA key; a request half a millisecond, in a task.
Decrypting a megabyte takes 5 ms. Handshakes together take at most TURN_S of a turn of the loop, as do large reads, and
REQUESTS requests start in one. What has begun goes on in between.

Order: first handshakes that the client has continued, since they are nearly done. Among them, and then among the
others, the client addresses in turn. Of one address the newest and the oldest come alternately: under overload the
newest's client is still waiting, and none of many clients behind one address may wait for ever.
"""

import asyncio
import time
from typing import Protocol

TURN_S = 0.002
REQUESTS = 4


class Waiting(Protocol):
    """A connection whose next step is the server's."""

    @property
    def address(self) -> str:
        """The client's address."""

    @property
    def continued(self) -> bool:
        """Whether the client has answered the server's first message."""

    def proceed(self) -> None:
        """Take the step."""


class FairQueue:
    """The steps that wait on one loop. Each is taken in a later turn than the one in which it was added.

    turn_s, most: the time and the number of steps after which a turn ends.
    """

    def __init__(self, turn_s: float = TURN_S, most: int = 1 << 16) -> None:
        self._turn_s = turn_s
        self._most = most
        self._continued, self._begun = _Addresses(), _Addresses()
        self._scheduled = False

    def add(self, one: Waiting) -> None:
        """Queue a step. May be called again."""
        (self._continued if one.continued else self._begun).add(one)
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def discard(self, one: Waiting) -> None:
        """Its connection is closed. May be called again."""
        self._continued.discard(one)
        self._begun.discard(one)

    def _turn(self) -> None:
        ends, left = time.perf_counter() + self._turn_s, self._most
        try:
            while (one := self._continued.take() or self._begun.take()) is not None:
                one.proceed()
                left -= 1
                if not left or time.perf_counter() >= ends:
                    break
        finally:  # the others go on where one has raised
            self._scheduled = bool(self._continued or self._begun)
            if self._scheduled:
                asyncio.get_running_loop().call_soon(self._turn)


class _Addresses:
    """Steps by address, in order of arrival."""

    def __init__(self) -> None:
        self._addresses: dict[str, _Same] = {}

    def __bool__(self) -> bool:
        return bool(self._addresses)

    def add(self, one: Waiting) -> None:
        if one.address not in self._addresses:
            self._addresses[one.address] = _Same()
        self._addresses[one.address].waiting[one] = None

    def discard(self, one: Waiting) -> None:
        same = self._addresses.get(one.address)
        if same is not None:
            same.waiting.pop(one, None)
            if not same.waiting:
                del self._addresses[one.address]

    def take(self) -> Waiting | None:
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
    """The steps of one address."""

    def __init__(self) -> None:
        self.waiting: dict[Waiting, None] = {}
        self._oldest = False

    def take(self) -> Waiting:
        """The newest or the oldest, alternately."""
        one = next(iter(self.waiting)) if self._oldest else next(reversed(self.waiting))
        del self.waiting[one]
        self._oldest = not self._oldest
        return one
