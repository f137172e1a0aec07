"""Whose TLS handshake goes on next, and how much of a turn of the loop they all take.

A handshake costs a server's CPU before it is known who asks: 0.3 ms with a key of EC P-256, 1 ms with one of RSA. A few
hundred that begin at once would hold the loop for as long as all of them take. They take TURN_S of a turn here; what
is established is served in between.

Order: those that the client went on with first, since they cost least and are nearly done; then the client addresses
in turn; of one address the newest, whose client still waits for it when there are more than can be served, and the
oldest by turns: many clients behind one address come again at once, and none of them may wait for ever.
"""

import asyncio
import time
from typing import Protocol

TURN_S = 0.002


class Handshake(Protocol):
    """A handshake that waits for the server."""

    @property
    def address(self) -> str:
        """Of the client."""

    @property
    def answered(self) -> bool:
        """Whether the client has gone on after the server's first message."""

    def shake(self) -> None:
        """Go on until the client has to do something."""


class Handshakes:
    """Those of one loop. Each goes on in a later turn than the one in which it was added."""

    def __init__(self, turn_s: float = TURN_S) -> None:
        self._turn_s = turn_s
        self._answered: dict[Handshake, None] = {}
        self._begun: dict[str, _Begun] = {}
        self._scheduled = False

    def add(self, one: Handshake) -> None:
        """Bytes have come for it. May be called again."""
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
    """Those of one address, as they came."""

    def __init__(self) -> None:
        self.waiting: dict[Handshake, None] = {}
        self._oldest = False

    def next(self) -> Handshake:
        """Take the newest and the oldest by turns."""
        one = next(iter(self.waiting)) if self._oldest else next(reversed(self.waiting))
        del self.waiting[one]
        self._oldest = not self._oldest
        return one
