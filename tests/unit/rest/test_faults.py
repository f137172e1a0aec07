"""Faults happen when they should, and the same way for the same seed."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.faults import Chance, Every, Faults, FaultyTransport, Outage
from kcm_cli.rest.transport import ConnectionLost, Request, Response, Stream, TimedOut, Unreachable

GET, PUT, POST = Request("GET", "/x"), Request("PUT", "/x"), Request("POST", "/x")
WATCH = Request("GET", "/x", (("watch", "true"), ("resourceVersion", "5")))


class Ticking:
    """Counts requests; its watches send a chunk each second."""

    def __init__(self):
        self.sent = []

    async def send(self, request):
        self.sent.append(request.method)
        return Response(200, {}, b"")

    @asynccontextmanager
    async def stream(self, request) -> AsyncIterator[Stream]:
        async def chunks() -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(1)
                yield b"x"

        yield Stream(200, {}, chunks())

    async def close(self):
        self.sent.append("closed")


def faulty(faults, seed=1):
    inner = Ticking()
    return inner, FaultyTransport(inner, faults, LoopClock(), random.Random(seed))


def statuses(faults, request, count, seed=1):
    async def run():
        inner, transport = faulty(faults, seed)
        found = []
        for _ in range(count):
            try:
                found.append((await transport.send(request)).status)
            except (TimedOut, Unreachable) as error:
                found.append(type(error).__name__)
        return found, inner.sent

    return virtual.run(run())


def test_no_faults_change_nothing():
    assert statuses(Faults(), PUT, 3) == ([200] * 3, ["PUT"] * 3)


def test_every_second_write_conflicts_and_has_no_effect():
    assert statuses(Faults(conflict=Every(2)), PUT, 4) == ([200, 409, 200, 409], ["PUT"] * 2)


def test_creations_and_reads_do_not_conflict():
    assert statuses(Faults(conflict=Every(1)), POST, 2)[0] == [200, 200]
    assert statuses(Faults(conflict=Every(1)), GET, 2)[0] == [200, 200]


def test_a_lost_answer_leaves_the_effect():
    assert statuses(Faults(lost=Every(2)), POST, 4) == ([200, "TimedOut", 200, "TimedOut"], ["POST"] * 4)


def test_throttling_says_when_to_come_back():
    async def run():
        _, transport = faulty(Faults(throttle=Every(1), retry_after_s=3))
        response = await transport.send(GET)
        assert (response.status, response.headers["retry-after"]) == (429, "3")
        assert transport.injected == {"throttle": 1}

    virtual.run(run())


def test_chance_is_the_same_for_the_same_seed():
    runs = [statuses(Faults(conflict=Chance(0.5)), PUT, 40, seed)[0] for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert 5 < runs[0].count(409) < 35


def test_latency_lies_between_its_bounds():
    async def run():
        _, transport = faulty(Faults(latency_s=(0.1, 0.2)))
        for _ in range(10):
            before = LoopClock().monotonic()
            await transport.send(GET)
            assert 0.1 <= LoopClock().monotonic() - before <= 0.2

    virtual.run(run())


def test_an_outage_refuses_requests_and_watches_for_its_span():
    async def run():
        inner, transport = faulty(Faults(outages=(Outage(10, 60),)))
        await transport.send(GET)
        await asyncio.sleep(10)
        with pytest.raises(Unreachable):
            await transport.send(GET)
        with pytest.raises(Unreachable):
            async with transport.stream(WATCH):
                pass
        await asyncio.sleep(60)
        await transport.send(GET)
        assert inner.sent == ["GET", "GET"]

    virtual.run(run())


async def read(transport):
    chunks = 0
    async with transport.stream(WATCH) as stream:
        async for _ in stream.chunks:
            chunks += 1
    return chunks


def test_an_outage_breaks_open_watches():
    async def run():
        _, transport = faulty(Faults(outages=(Outage(3.5, 1),)))
        with pytest.raises(ConnectionLost):
            await read(transport)
        assert LoopClock().monotonic() == pytest.approx(3.5)

    virtual.run(run())


def test_watches_are_cut():
    async def run():
        _, transport = faulty(Faults(cut_s=2.5, cut_breaks=Every(2)))
        assert await read(transport) == 2
        with pytest.raises(ConnectionLost):
            await read(transport)

    virtual.run(run())


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ((("watch", "true"), ("resourceVersion", "5")), 410),
        ((("watch", "true"), ("resourceVersion", "0")), 200),
        ((("watch", "true"),), 200),
    ],
)
def test_only_watches_from_a_version_expire(query, status):
    async def run():
        _, transport = faulty(Faults(expire=Every(1)))
        async with transport.stream(Request("GET", "/x", query)) as stream:
            assert stream.status == status

    virtual.run(run())


def test_only_later_pages_of_lists_expire():
    faults = Faults(expire=Every(1))
    assert statuses(faults, GET, 1)[0] == [200]
    assert statuses(faults, Request("GET", "/x", (("continue", "t"),)), 1)[0] == [410]


def test_closing_closes_the_inner_transport():
    async def run():
        inner, transport = faulty(Faults())
        await transport.close()
        assert inner.sent == ["closed"]

    virtual.run(run())
