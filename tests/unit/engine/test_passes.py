"""Endless loops beside the workers."""

import asyncio
import logging
from weakref import WeakSet

import pytest

from kcm_cli.api.core import Pod
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.logs import fields_of
from kcm_cli.engine.passes import OBJECTS, Loop, for_each, in_turns
from kcm_cli.machinery.meta import ObjectMeta
from tests.kit.world import EPOCH


def times(step, seconds, clock=None, **settings):
    """When (virtual seconds) the passes of a loop begin, while so many seconds pass; then it is cancelled."""
    clock = clock or LoopClock(EPOCH)

    async def main():
        begun = []

        async def counted():
            begun.append(asyncio.get_running_loop().time())
            await step(len(begun))

        loop = asyncio.create_task(Loop(name="c", clock=clock, step=counted, **settings).run())
        await asyncio.sleep(seconds)
        loop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loop
        return begun

    return virtual.run(main())


async def nothing(number):
    pass


def test_passes_repeat_after_a_pause():
    assert times(nothing, 5, pause_s=lambda: 2.0) == [0, 2, 4]
    assert times(nothing, 5, pause_s=lambda: 2.0, delay_s=2.0) == [2, 4]


def test_a_failed_pass_is_logged_and_followed_by_the_next(caplog):
    async def step(number):
        if number == 2:
            raise ValueError("wrong")

    with caplog.at_level(logging.ERROR):
        assert times(step, 5, pause_s=lambda: 2.0) == [0, 2, 4]
    (record,) = caplog.records
    assert record.fields == {"controller": "c", "err": "wrong"}


def test_cancelling_ends_a_running_pass():
    async def step(number):
        await asyncio.Event().wait()

    assert times(step, 5, pause_s=lambda: 2.0) == [0]


async def test_an_error_of_one_object_is_logged_and_others_are_processed(caplog):
    pods = [Pod(metadata=ObjectMeta(name=f"p{number}", namespace="ns")) for number in range(6)]
    seen = []

    async def step(pod):
        if pod.name == "p2":
            raise OverflowError("a year of five digits")
        await asyncio.sleep(1.0)
        seen.append((pod.name, asyncio.get_running_loop().time()))

    with caplog.at_level(logging.ERROR):
        await for_each("c", pods, step, workers=2)
    assert seen == [("p0", 1), ("p1", 1), ("p3", 2), ("p4", 2), ("p5", 3)]
    (record,) = caplog.records
    assert fields_of(record)["key"] == "ns/p2"
    assert record.exc_info is not None


async def test_a_long_pass_yields_to_other_tasks():
    turns = []

    async def other():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await for_each("c", [Pod()] * (OBJECTS * 10), nothing)
    beside.cancel()
    assert len(turns) >= 10


class Version:
    """Of an object that the cache replaces while a pass is under way."""

    key = "ns/a"


async def test_a_pass_keeps_no_versions_that_it_has_seen():
    """They would all be freed at its end, in one turn."""
    alive: WeakSet[Version] = WeakSet()

    def cached() -> list[Version]:
        found = [Version() for _ in range(10)]
        alive.update(found)
        return found

    async def step(_: Version) -> None:
        left.append(len(alive))

    left: list[int] = []
    await for_each("c", cached(), step)
    assert (left[0], len(left)) == (10, 10)
    assert left[-1] <= 2
    left = []
    async for _ in in_turns(cached(), OBJECTS):
        left.append(len(alive))
    assert (left[0], len(left)) == (10, 10)
    assert left[-1] <= 2
