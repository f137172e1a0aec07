"""The connections that are closed by limits."""

import asyncio
from collections.abc import Callable

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.serving.connection_limits import HEAD_S, IDLE_S, ConnectionLimits, Limits, Slot


class Peers:
    """Connections of a server, and what became of them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = ConnectionLimits(limits, LoopClock())
        self.closed: list[str] = []
        self.refused: list[str] = []
        self.slots: dict[str, Slot] = {}

    def connect(self, name: str, address: str = "a") -> None:
        slot = self.slots[name] = self.limits.admit(address, lambda: self.closed.append(name))
        slot.on_refusal(lambda: self.closed.append(name), lambda: self.refused.append(name))


@pytest.mark.parametrize(
    ("address", "client", "network"),
    [
        ("192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"),
        ("fd00::1:2", "fd00::1:2", "fd00::/64"),
        ("::1", "::1", "::/64"),
        ("", "", ""),
    ],
)
async def test_a_client_has_an_address_and_shares_the_limits_of_its_network(
    address: str, client: str, network: str
) -> None:
    slot = ConnectionLimits(Limits(10), LoopClock()).admit(address, lambda: None)
    assert (slot.client, slot.address) == (client, network)


async def test_timeouts_equal_gos() -> None:
    peers = Peers(Limits(10))
    for name in ("silent", "drips", "idle", "again", "busy"):
        peers.connect(name)
    for name in ("idle", "again", "busy"):
        peers.slots[name].complete()
    for name in ("idle", "again"):
        peers.slots[name].answered()
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


async def test_bytes_that_come_after_the_end_of_a_connection_cost_the_others_nothing() -> None:
    peers = Peers(Limits(4, all_head_bytes=1000, all_body_bytes=1000))
    for name in ("other", "gone"):
        peers.connect(name)
    assert peers.slots["other"].received(900)
    gone = peers.slots["gone"]
    peers.limits.leave(gone)
    for _ in range(2):
        assert not gone.received(5000)
        assert not gone.body(5000)
        gone.answered(5000)
    assert peers.refused == []
    peers.connect("next", "b")
    assert peers.slots["next"].received(100)
    assert not peers.slots["next"].received(1) or peers.refused == ["other"]


async def test_a_flood_closes_the_longest_idle_connection_of_its_address() -> None:
    peers = Peers(Limits(4))
    peers.connect("other", "b")
    for number in range(6):
        await asyncio.sleep(1)
        peers.connect(f"flood{number}")
    assert peers.closed == ["flood0", "flood1", "flood2"]
    assert len(peers.limits) == 4


async def test_connections_with_a_response_are_closed_last() -> None:
    peers = Peers(Limits(4))
    for name in ("probe", "other"):
        peers.connect(name)
        peers.slots[name].complete()
        peers.slots[name].answered()
    for number in range(5):
        await asyncio.sleep(1)
        peers.connect(f"flood{number}")
    assert peers.closed == ["flood0", "flood1", "flood2"]
    peers.slots["flood3"].complete()
    peers.slots["flood3"].answered()  # more than half of all have had one now: it protects nobody
    peers.connect("more")
    assert peers.closed[-1] == "probe"


async def test_addresses_of_one_network_are_one_client() -> None:
    peers = Peers(Limits(4))
    peers.connect("other", "::ffff:10.0.0.1")
    for number in range(5):
        await asyncio.sleep(1)
        peers.connect(f"flood{number}", f"2001:db8::{number:x}%eth0")
    peers.connect("again", "10.0.0.1")
    assert peers.closed == ["flood0", "flood1", "flood2"]


async def test_running_requests_are_kept_while_others_wait_for_their_clients() -> None:
    peers = Peers(Limits(3))
    for name in ("one", "two", "idle"):
        await asyncio.sleep(1)
        peers.connect(name)
    for name in ("one", "two"):
        peers.slots[name].complete()
    peers.connect("three")
    peers.slots["three"].complete()
    assert peers.closed == ["idle"]
    peers.slots["two"].stalled = True  # its client does not read
    peers.connect("four")
    assert peers.closed == ["idle", "two"]


async def test_a_client_that_waits_for_the_server_keeps_nobody_out() -> None:
    """Two addresses with requests that take long, each without half of the connections."""
    peers = Peers(Limits(64))
    for name in ("probe", "scraper"):
        peers.connect(name, "honest")
        peers.slots[name].complete()
        peers.slots[name].answered()
    for number in range(200):
        await asyncio.sleep(0.01)
        peers.connect(f"busy{number}", f"address{number % 2}")
        peers.slots[f"busy{number}"].complete()
    assert peers.closed == [f"busy{number}" for number in range(138)]  # the longest first
    peers.connect("late", "another")
    peers.slots["late"].complete()
    assert peers.closed[138:] == ["busy138"]
    assert len(peers.limits) == 64


async def test_an_address_below_its_share_loses_nothing_that_runs() -> None:
    """An eighth of all: a botnet with one idle connection each does not displace a client with a few requests."""
    peers = Peers(Limits(64))
    for number in range(8):
        peers.connect(f"honest{number}", "honest")
        peers.slots[f"honest{number}"].complete()
    for number in range(200):
        await asyncio.sleep(0.01)
        peers.connect(f"bot{number}", f"10.0.0.{number}")
    assert len(peers.closed) == 144
    assert not [name for name in peers.closed if name.startswith("honest")]


async def test_heads_count_until_they_are_answered() -> None:
    peers = Peers(Limits(10, all_head_bytes=1000))
    for name in ("one", "two"):
        peers.connect(name)
        assert peers.slots[name].received(300)
        assert peers.slots[name].header()  # what it takes in memory, too
    peers.slots["one"].complete()
    peers.connect("more")
    peers.slots["more"].received(1)
    assert peers.refused == ["one"]
    peers.slots["two"].complete()
    peers.slots["two"].answered(held=200)
    assert peers.slots["more"].received(500)
    assert peers.refused == ["one"]


async def test_heads_are_limited_each_and_in_total() -> None:
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
    peers.slots["small"].answered()
    assert peers.slots["more"].received(20)
    await asyncio.sleep(2)
    assert peers.closed == ["large", "middle"]  # a moment after they were refused


async def test_headers_are_counted_for_each_head() -> None:
    peers = Peers(Limits(10, headers=2))
    peers.connect("one")
    slot = peers.slots["one"]
    assert [slot.header() for _ in range(3)] == [True, True, False]
    slot.complete()
    slot.answered()
    assert slot.header()


async def test_a_closed_connection_frees_its_slot_and_bytes() -> None:
    peers = Peers(Limits(1, all_head_bytes=100))
    peers.connect("one")
    peers.slots["one"].received(100)
    peers.limits.leave(peers.slots["one"])
    peers.limits.leave(peers.slots["one"])
    peers.connect("two")
    assert peers.slots["two"].received(100)
    peers.limits.close()
    assert peers.closed == ["two"]
    assert len(peers.limits) == 0


class CountingClock(LoopClock):
    """A clock that counts its timers."""

    timers = 0

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        self.timers += 1
        return super().call_later(delay_s, callback)


async def test_deadlines_are_checked_when_one_expires() -> None:
    """A watch that is open for a day costs nothing, and a request every second little."""
    clock = CountingClock()
    limits = ConnectionLimits(Limits(10), clock)
    slots = [limits.admit("a", lambda: None), limits.admit("a", lambda: None)]
    for slot in slots:
        slot.complete()
    await asyncio.sleep(86_400)
    assert clock.timers == 1  # for the heads
    for _ in range(int(10 * HEAD_S)):
        assert slots[0].received(1)
        slots[0].complete()
        slots[0].answered()
        await asyncio.sleep(1)
    assert clock.timers < 30 and len(limits) == 2
    await asyncio.sleep(IDLE_S)
    assert len(limits) == 1
    limits.close()
