"""The connections that are closed by limits."""

import asyncio
from collections.abc import Callable

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.connection_limits import HEAD_S, IDLE_S, ConnectionLimits, Limits, Slot


class Peers:
    """Connections of a server, and what became of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = ConnectionLimits(limits, LoopClock())
        self.closed: list[str] = []
        self.refused: list[str] = []
        self.slots: dict[str, Slot] = {}

    def connect(self, name: str, address: str = "a") -> bool:
        slot = self.limits.admit(address, lambda: self.closed.append(name))
        if slot is not None:
            slot.on_refusal(lambda: self.closed.append(name), lambda: self.refused.append(name))
            self.slots[name] = slot
        return slot is not None


def test_timeouts_equal_gos() -> None:
    async def main() -> None:
        peers = Peers(Limits(10))
        for name in ("silent", "drips", "idle", "again", "busy"):
            peers.connect(name)
        for name in ("idle", "again", "busy"):
            peers.slots[name].complete()
        for name in ("idle", "again"):
            peers.slots[name].idle()
        for _ in range(int(HEAD_S)):
            peers.slots["drips"].received(1)
            await asyncio.sleep(1)
        await asyncio.sleep(1)
        assert peers.closed == ["silent", "drips"]
        await asyncio.sleep(IDLE_S - HEAD_S - 10)
        peers.slots["again"].received(1)  # the next head has its own time
        await asyncio.sleep(12)
        assert peers.closed == ["silent", "drips", "idle"]
        await asyncio.sleep(HEAD_S)
        assert peers.closed == ["silent", "drips", "idle", "again"]
        await asyncio.sleep(10_000)
        assert len(peers.limits) == 1

    virtual.run(main())


def test_a_flood_closes_the_longest_idle_connection_of_its_address() -> None:
    async def main() -> None:
        peers = Peers(Limits(4))
        peers.connect("other", "b")
        for number in range(6):
            await asyncio.sleep(1)
            peers.connect(f"flood{number}")
        assert peers.closed == ["flood0", "flood1", "flood2"]
        assert len(peers.limits) == 4

    virtual.run(main())


def test_connections_with_a_response_are_closed_last() -> None:
    async def main() -> None:
        peers = Peers(Limits(4))
        for name in ("probe", "other"):
            peers.connect(name)
            peers.slots[name].complete()
            peers.slots[name].idle()
        for number in range(5):
            await asyncio.sleep(1)
            peers.connect(f"flood{number}")
        assert peers.closed == ["flood0", "flood1", "flood2"]
        peers.slots["flood3"].complete()
        peers.slots["flood3"].idle()  # more than half of all have had one now: it protects nobody
        peers.connect("more")
        assert peers.closed[-1] == "probe"

    virtual.run(main())


def test_addresses_of_one_network_are_one_client() -> None:
    async def main() -> None:
        peers = Peers(Limits(4))
        peers.connect("other", "::ffff:10.0.0.1")
        for number in range(5):
            await asyncio.sleep(1)
            peers.connect(f"flood{number}", f"2001:db8::{number:x}%eth0")
        peers.connect("again", "10.0.0.1")
        assert peers.closed == ["flood0", "flood1", "flood2"]

    virtual.run(main())


def test_running_requests_are_kept_unless_the_client_does_not_read() -> None:
    async def main() -> None:
        peers = Peers(Limits(2))
        for name in ("one", "two"):
            peers.connect(name)
            peers.slots[name].complete()
        assert not peers.connect("three")
        peers.slots["two"].stalled = True
        assert peers.connect("four")
        assert peers.closed == ["two"]

    virtual.run(main())


def test_one_client_cannot_use_all_connections() -> None:
    async def main() -> None:
        peers = Peers(Limits(4))
        for number in range(4):
            peers.connect(f"busy{number}")
            peers.slots[f"busy{number}"].complete()
        assert not peers.connect("same")
        assert peers.connect("other", "b")
        assert peers.closed == ["busy0"]

    virtual.run(main())


def test_heads_are_limited_each_and_in_total() -> None:
    async def main() -> None:
        peers = Peers(Limits(10, head_bytes=100, all_head_bytes=250))
        for name in ("small", "large", "middle"):
            peers.connect(name)
        assert peers.slots["large"].received(100)
        assert not peers.slots["middle"].received(101)
        peers.slots["middle"].refuse()
        assert peers.slots["small"].received(90)
        peers.connect("more")
        assert peers.slots["more"].received(80)
        assert peers.refused == ["middle", "large"]
        peers.slots["small"].complete()
        assert peers.slots["more"].received(20)
        await asyncio.sleep(2)
        assert peers.closed == ["large", "middle"]  # a moment after they were refused

    virtual.run(main())


def test_headers_are_counted_for_each_head() -> None:
    async def main() -> None:
        peers = Peers(Limits(10, headers=2))
        peers.connect("one")
        slot = peers.slots["one"]
        assert [slot.header() for _ in range(3)] == [True, True, False]
        slot.complete()
        assert slot.header()

    virtual.run(main())


def test_a_closed_connection_frees_its_slot_and_bytes() -> None:
    async def main() -> None:
        peers = Peers(Limits(1, all_head_bytes=100))
        peers.connect("one")
        peers.slots["one"].received(100)
        peers.limits.leave(peers.slots["one"])
        peers.limits.leave(peers.slots["one"])
        assert peers.connect("two")
        assert peers.slots["two"].received(100)
        peers.limits.close()
        assert peers.closed == ["two"]
        assert len(peers.limits) == 0

    virtual.run(main())


class CountingClock(LoopClock):
    """A clock that counts its timers."""

    timers = 0

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_later(delay_s, callback)


def test_deadlines_are_checked_when_one_expires() -> None:
    """A watch that is open for a day costs nothing, and a request every second little."""

    async def main() -> None:
        clock = CountingClock()
        limits = ConnectionLimits(Limits(10), clock)
        slots = [limits.admit("a", lambda: None), limits.admit("a", lambda: None)]
        for slot in slots:
            assert slot is not None
            slot.complete()
        await asyncio.sleep(86_400)
        assert clock.timers == 1  # for the heads
        for _ in range(int(10 * HEAD_S)):
            assert slots[0] is not None and slots[0].received(1)
            slots[0].complete()
            slots[0].idle()
            await asyncio.sleep(1)
        assert clock.timers < 30 and len(limits) == 2
        await asyncio.sleep(IDLE_S)
        assert len(limits) == 1
        limits.close()

    virtual.run(main())
