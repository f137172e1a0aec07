"""What the callers of a server may take of it: connections, bytes of heads, time.

A server has many ``Slot``s, one for each connection, and one ``ConnectionLimits``. As Go's: a head (request line and
headers) of at most MAX_HEAD_BYTES within HEAD_S, and IDLE_S between requests. Beyond that there is a bound for all
connections together, which Go leaves to its goroutines: so many connections, MOST_HEAD_BYTES of heads that are not
complete yet, and MOST_BODY_BYTES of bodies where they are kept until they are whole.

Guarantees: none of the connections that wait for their client costs another one anything. When there are too many, it
is the client address (of IPv6 the /64) with the most connections that loses one: of those that never had an answer the
one that has waited longest, then of those that had one, which are half of all at most. When heads or bodies are too
large in sum, the largest is refused. A connection whose request is being handled is left alone, unless its client does
not read the answer, or has more than half of all connections and another client needs one.

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
MAX_ACCEPT = 4096
"""So many characters of an Accept header are read."""
HEAD_S = 32.0
IDLE_S = 90.0
MOST_HEAD_BYTES = 4 << 20
MOST_BODY_BYTES = 24 << 20
MAX_UNREAD_BODY_BYTES = 256 << 10
"""A body that its handler did not read is read so far, to keep the connection."""
_REFUSED_S = 0.5
"""A client that is refused has so long to read why."""
SWEEP_S = 0.5
_NEVER = float("inf")


class Limits(msgspec.Struct, frozen=True):
    """For one server. ``connections``: at most so many at once. ``sweep_s``: deadlines are looked at no oftener."""

    connections: int
    head_bytes: int = MAX_HEAD_BYTES
    headers: int = MAX_HEADERS
    all_head_bytes: int = MOST_HEAD_BYTES
    all_body_bytes: int = MOST_BODY_BYTES
    head_s: float = HEAD_S
    idle_s: float = IDLE_S
    sweep_s: float = SWEEP_S


class Slot:
    """One connection, as the limits see it. It waits for its client at first."""

    __slots__ = (
        "_close",
        "_idle",
        "_limits",
        "_refuse",
        "address",
        "body_bytes",
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
        self.address = _network(address)
        self.served = False
        self.refused = False
        self.since = limits.now()
        self.until = self.since + limits.settings.head_s
        limits.expect(self.until)
        self.head_bytes = 0
        self.body_bytes = 0
        self.headers = 0
        self.stalled = False
        self._idle = False

    def on_refusal(self, close: Callable[[], None], refuse: Callable[[], None]) -> None:
        """How to close the connection from now on, and how to answer 431 and then close it."""
        self._close, self._refuse = close, refuse

    @property
    def waiting(self) -> bool:
        """Whether its client has to do something next."""
        return self.until != _NEVER or self.stalled

    def received(self, count: int) -> bool:
        """So many bytes of a head have come; whether they are not too many."""
        if self.head_bytes == 0:
            self._begin()
        self.head_bytes += count
        fits = self._limits.head_grown(self, count)
        return fits and self.head_bytes <= self._limits.settings.head_bytes

    def body(self, count: int) -> bool:
        """So many bytes of a body have come that is kept until it is whole; whether there is room for them."""
        self.body_bytes += count
        return self._limits.body_grown(self, count)

    def _begin(self) -> None:
        """The first byte after an idle time: the head has its own. That of a new connection runs already."""
        if self._idle:
            self._idle = False
            self.until = self._limits.now() + self._limits.settings.head_s
            self._limits.expect(self.until)

    def header(self) -> bool:
        """Count a header that arrived; False if there are too many."""
        self.headers += 1
        return self.headers <= self._limits.settings.headers

    def complete(self) -> None:
        """The head is complete: its request is handled from now on."""
        self._limits.forget(self)
        self.headers = 0
        self.until = _NEVER

    def idle(self, for_s: float | None = None) -> None:
        """The request has been answered: the next may begin within IDLE_S (or ``for_s``)."""
        settings = self._limits.settings
        self.served = self.served or for_s is None
        self._idle = for_s is None and self.head_bytes == 0
        if for_s is None:
            for_s = settings.idle_s if self._idle else settings.head_s
        self.since = self._limits.now()
        self.until = self.since + for_s
        self._limits.expect(self.until)

    def close(self) -> None:
        """Close the connection, without an answer."""
        self._close()

    def refuse(self) -> None:
        """Answer 431, and close the connection soon."""
        self.refused = True
        self.complete()
        self.idle(_REFUSED_S)
        self._limits.end_soon(self, _REFUSED_S)
        self._refuse()


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

    def admit(self, address: str, close: Callable[[], None]) -> Slot | None:
        """A place for a new connection, at another's expense if need be; None if all are busy."""
        if len(self._slots) >= self.settings.connections and not self._make_room(address):
            return None
        slot = Slot(self, address, close, close)
        self._slots[slot] = None
        self._counts[slot.address] += 1
        return slot

    def leave(self, slot: Slot) -> None:
        """The connection is closed. May be called again."""
        if slot in self._slots:
            del self._slots[slot]
            self._counts[slot.address] -= 1
            if not self._counts[slot.address]:
                del self._counts[slot.address]
            slot.on_refusal(_nothing, _nothing)
        self.forget(slot)  # bytes may have come after its end

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

    def head_grown(self, slot: Slot, count: int) -> bool:
        """A slot holds so many bytes of a head more; whether it may."""
        self._head_bytes += count
        while self._head_bytes > self.settings.all_head_bytes:
            largest = max(self._slots, key=lambda one: one.head_bytes)
            if largest is slot:
                return False
            largest.refuse()
        return True

    def body_grown(self, slot: Slot, count: int) -> bool:
        """The same of a body that is kept until it is whole."""
        self._body_bytes += count
        while self._body_bytes > self.settings.all_body_bytes:
            largest = max(self._slots, key=lambda one: one.body_bytes)
            if largest is slot:
                return False
            largest.refuse()
        return True

    def forget(self, slot: Slot) -> None:
        """A slot holds nothing any more."""
        self._head_bytes -= slot.head_bytes
        self._body_bytes -= slot.body_bytes
        slot.head_bytes = slot.body_bytes = 0

    def _make_room(self, address: str) -> bool:
        waiting = [slot for slot in self._slots if slot.waiting] or self._greedy(address)
        if not waiting:
            return False
        kept = sum(slot.served for slot in waiting) <= self.settings.connections // 2
        # Those who wait for a request go before those whose answer is not read.
        loser = min(
            waiting, key=lambda slot: (-self._counts[slot.address], slot.stalled, kept and slot.served, slot.since)
        )
        self.end(loser)
        return True

    def _greedy(self, address: str) -> list[Slot]:
        """Requests that are handled, of another client that has more than half of all connections."""
        most = max(self._counts, key=self._counts.__getitem__)
        if most == _network(address) or self._counts[most] <= self.settings.connections // 2:
            return []
        return [slot for slot in self._slots if slot.address == most]

    def expect(self, until: float) -> None:
        """Close, when this deadline is over, those that have let theirs pass."""
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
    """What one client has at the least: an address of IPv4, a /64 of IPv6."""
    if ":" not in address:
        return address
    try:
        whole = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(whole.ipv4_mapped or ipaddress.IPv6Network((whole, 64), strict=False))


def _nothing() -> None:
    return None
