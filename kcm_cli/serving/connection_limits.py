"""Limits of a server's connections: their number, the bytes of their requests, and time.

A server has one ``ConnectionLimits``, and a ``Slot`` for each connection. As in Go's server, a head (request line and
headers) has at most MAX_HEAD_BYTES and must arrive within HEAD_S, and a connection is idle for at most IDLE_S. In
addition there are limits for all connections together, which Go's server lacks: their number, MOST_HEAD_BYTES of heads
until they are answered, and MOST_BODY_BYTES of bodies.

Guarantees: a client address (the /64 of an IPv6 address) costs others nothing, however many connections it has, and
whether they wait for it or for the server. A new connection is always admitted. When there are too many, the address
with the most of them loses one, if it has more than an eighth of all; else any address does. First goes one that waits
for its client: of those the longest waiting one that has never had an answer, then one that had (at most half of all).
If none waits, the one goes whose request has been handled for the longest time. When heads or bodies are too large in
sum, the largest is refused.

upstream: net/http/server.go, staging/src/k8s.io/apiserver/pkg/server/secure_serving.go
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable

import msgspec

from kcm_cli.component.clock import Clock

MAX_HEAD_BYTES = (1 << 20) + 4096
MAX_HEADERS = 1024
HEADER_BYTES = 256
"""What a header takes in memory beside its text."""
HEAD_S = 32.0
IDLE_S = 90.0
MOST_HEAD_BYTES = 4 << 20
MOST_BODY_BYTES = 24 << 20
_REFUSED_S = 0.5
"""A client that is refused has so long to read why."""
SWEEP_S = 0.5
_SHARE = 8
_NEVER = float("inf")


class Limits(msgspec.Struct, frozen=True):
    """The limits of one server. ``connections``: the maximum. ``sweep_s``: the least interval of deadline checks."""

    connections: int
    head_bytes: int = MAX_HEAD_BYTES
    headers: int = MAX_HEADERS
    all_head_bytes: int = MOST_HEAD_BYTES
    all_body_bytes: int = MOST_BODY_BYTES
    head_s: float = HEAD_S
    idle_s: float = IDLE_S
    sweep_s: float = SWEEP_S


class Slot:
    """One connection and its deadlines. At first it waits for its client.

    address: what all connections of one client have. client: its own address.
    """

    __slots__ = (
        "_close",
        "_idle",
        "_limits",
        "_refuse",
        "address",
        "body_bytes",
        "client",
        "head_bytes",
        "headers",
        "refused",
        "served",
        "since",
        "stalled",
        "until",
    )

    def __init__(
        self, limits: "ConnectionLimits", address: str, close: Callable[[], None], refuse: Callable[[], None]
    ) -> None:
        self._limits = limits
        self._close = close
        self._refuse = refuse
        self.address, self.client = _network(address), _shown(address)
        self.served = False
        self.refused = False
        self.head_bytes = 0
        self.body_bytes = 0
        self.headers = 0
        self.stalled = False
        self._idle = False
        self.wait(limits.settings.head_s)

    def on_refusal(self, close: Callable[[], None], refuse: Callable[[], None]) -> None:
        """Set the functions that close the connection, and that answer 431 and then close it."""
        self._close, self._refuse = close, refuse

    @property
    def waiting(self) -> bool:
        """Whether the next step is the client's."""
        return self.until != _NEVER or self.stalled

    def received(self, count: int) -> bool:
        """Count bytes of heads. Returns False if there are too many."""
        if self._idle:  # the first byte after an idle time starts the head's deadline
            self._idle = False
            self.until = self._limits.now() + self._limits.settings.head_s
            self._limits.expect(self.until)
        if not self._limits.has(self):
            return False
        self.head_bytes += count
        fits = self._limits.head_grown(self, count)
        return fits and self.head_bytes <= self._limits.settings.head_bytes + self.headers * HEADER_BYTES

    def header(self) -> bool:
        """Count a header that arrived; False if there are too many."""
        self.headers += 1
        return self.received(HEADER_BYTES) and self.headers <= self._limits.settings.headers

    def body(self, count: int) -> bool:
        """Count bytes of a body that is collected. Returns False if there are too many."""
        if not self._limits.has(self):
            return False
        self.body_bytes += count
        return self._limits.body_grown(self, count)

    def wait(self, for_s: float) -> None:
        """Give the client so long for its next step."""
        self.since = self._limits.now()
        self.until = self.since + for_s
        self._limits.expect(self.until)

    def complete(self) -> None:
        """The request is complete, and is being handled. Its bytes count until it has been answered."""
        self.since, self.until = self._limits.now(), _NEVER

    def answered(self, held: int = 0) -> None:
        """The request has been answered: the next may begin within IDLE_S. held: bytes of it that arrived already."""
        self.served = True
        self.forget()
        self._idle = not held
        self.wait(self._limits.settings.idle_s if self._idle else self._limits.settings.head_s)
        if held and self._limits.has(self):
            self.head_bytes = held
            self._limits.head_grown(self, held)

    def forget(self) -> None:
        """The bytes of the request have been freed."""
        self._limits.freed(self)
        self.headers = self.head_bytes = self.body_bytes = 0

    def close(self) -> None:
        """Close the connection, without an answer."""
        self._close()

    def refuse(self) -> None:
        """Answer 431, and close the connection soon."""
        self.refused = True
        self._refuse()
        self.forget()
        self.wait(_REFUSED_S)
        self._limits.end_soon(self, _REFUSED_S)


class ConnectionLimits:
    """The connections of one server. ``admit`` each, and ``leave`` when it is closed."""

    def __init__(self, settings: Limits, clock: Clock) -> None:
        self.settings = settings
        self._clock = clock
        self._slots: dict[Slot, None] = {}
        self._counts = Counter[str]()
        self._head_bytes = self._body_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = _NEVER

    def __len__(self) -> int:
        return len(self._slots)

    def now(self) -> float:
        """Seconds on the clock of the deadlines."""
        return self._clock.monotonic()

    def admit(self, address: str, close: Callable[[], None]) -> Slot:
        """The slot of a new connection, for which another may be closed."""
        slot = Slot(self, address, close, close)
        self._counts[slot.address] += 1
        if len(self._slots) >= self.settings.connections:
            self.end(self._loser())
        self._slots[slot] = None
        return slot

    def leave(self, slot: Slot) -> None:
        """The connection is closed. May be called again."""
        if slot in self._slots:
            del self._slots[slot]
            self._counts[slot.address] -= 1
            if not self._counts[slot.address]:
                del self._counts[slot.address]
            slot.on_refusal(_nothing, _nothing)
            slot.forget()

    def end(self, slot: Slot) -> None:
        """Close a connection, if it is not closed."""
        if slot in self._slots:
            slot.close()
            self.leave(slot)

    def end_soon(self, slot: Slot, after_s: float) -> None:
        """The same after a time."""
        self._clock.call_later(after_s, lambda: self.end(slot))

    def close(self) -> None:
        """Close all connections."""
        if self._timer is not None:
            self._timer.cancel()
        self._due = -_NEVER
        for slot in list(self._slots):
            self.end(slot)

    def has(self, slot: Slot) -> bool:
        """Whether the connection counts. Bytes that come after its end do not: no other would be closed for them."""
        return slot in self._slots

    def head_grown(self, slot: Slot, count: int) -> bool:
        """Count more bytes of a slot's heads. Returns False if there are too many."""
        self._head_bytes += count
        while self._head_bytes > self.settings.all_head_bytes:
            largest = max(self._slots, key=lambda one: one.head_bytes)
            if largest is slot:
                return False
            largest.refuse()
        return True

    def body_grown(self, slot: Slot, count: int) -> bool:
        """The same for a body that is collected."""
        self._body_bytes += count
        while self._body_bytes > self.settings.all_body_bytes:
            largest = max(self._slots, key=lambda one: one.body_bytes)
            if largest is slot:
                return False
            largest.refuse()
        return True

    def freed(self, slot: Slot) -> None:
        """Count a slot's bytes no more."""
        self._head_bytes -= slot.head_bytes
        self._body_bytes -= slot.body_bytes

    def _loser(self) -> Slot:
        """The connection to close for a new one, whose address is counted."""
        waiting = [slot for slot in self._slots if slot.waiting]
        kept = sum(slot.served for slot in waiting) <= self.settings.connections // 2

        share = self.settings.connections // _SHARE

        def order(slot: Slot) -> tuple[int, bool, int, bool, bool, float]:
            count = self._counts[slot.address]
            greedy = count if count > share else 0
            # Those who wait for a request go before those whose answer is not read.
            return -greedy, not slot.waiting, -count, slot.stalled, kept and slot.served, slot.since

        return min(self._slots, key=order)

    def expect(self, until: float) -> None:
        """Schedule a check of the deadlines at this time."""
        if until >= self._due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due = until
        self._timer = self._clock.call_later(max(until - self.now(), self.settings.sweep_s), self._sweep)

    def _sweep(self) -> None:
        now = self.now()
        for slot in [slot for slot in self._slots if slot.until <= now]:
            self.end(slot)
        self._timer, self._due = None, _NEVER
        self.expect(min((slot.until for slot in self._slots), default=_NEVER))


def _network(address: str) -> str:
    """The network of one client: its IPv4 address, or the /64 of its IPv6 address."""
    if ":" not in address:
        return address
    try:
        whole = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(whole.ipv4_mapped or ipaddress.IPv6Network((whole, 64), strict=False))


def _shown(address: str) -> str:
    """An address as Go shows it: one of IPv4 on a socket of both families is of IPv4."""
    return address.removeprefix("::ffff:") if "." in address else address


def _nothing() -> None:
    return None
