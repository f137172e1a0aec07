"""Endless loops beside the workers."""

import asyncio
import logging
import random

import pytest

from kcm_cli.api.core import PODS
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine.resync import Loop
from kcm_cli.runtime.informer import Informer
from tests.unit.sandbox.nodes.world import EPOCH


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


def test_a_pass_the_pause_and_the_next():
    assert times(nothing, 5, pause_s=lambda: 2.0) == [0, 2, 4]
    assert times(nothing, 5, pause_s=lambda: 2.0, delay_s=2.0) == [2, 4]


def test_a_pass_that_fails_is_logged_and_the_next_one_comes(caplog):
    async def step(number):
        if number == 2:
            raise ValueError("wrong")

    with caplog.at_level(logging.ERROR):
        assert times(step, 5, pause_s=lambda: 2.0) == [0, 2, 4]
    (record,) = caplog.records
    assert record.fields == {"controller": "c", "err": "wrong"}


def test_cancelling_ends_a_pass_under_way():
    async def step(number):
        await asyncio.Event().wait()

    assert times(step, 5, pause_s=lambda: 2.0) == [0]


def test_nothing_before_the_caches_are_full():
    pods = Informer(PODS, None, LoopClock(), random.Random(1))
    assert times(nothing, 5, pause_s=lambda: 2.0, waits_for=(pods,)) == []
    pods.synced.set()
    assert times(nothing, 1, pause_s=lambda: 2.0, waits_for=(pods,)) == [0]
