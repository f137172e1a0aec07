"""Slots: order, growth, cancellation."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.in_flight import CALM_S, PATIENCE_S, Slots


async def use(slots, seconds, log, name):
    if not slots.take():
        await slots.wait()
    log.append(name)
    try:
        await asyncio.sleep(seconds)
    finally:
        slots.give_back()


async def test_slots_are_granted_in_order():
    slots, log = Slots(2, 2, LoopClock()), []
    await asyncio.gather(*(use(slots, 1, log, number) for number in range(6)))
    assert log == list(range(6))
    assert LoopClock().monotonic() == 3


async def test_fast_responses_need_no_more_slots():
    slots = Slots(2, 100, LoopClock())
    await asyncio.gather(*(use(slots, PATIENCE_S / 60, [], number) for number in range(100)))
    assert slots.total == 2


async def test_slow_responses_double_the_slots_up_to_the_maximum():
    slots, log = Slots(2, 15, LoopClock()), []
    tasks = [asyncio.create_task(use(slots, 1000, log, number)) for number in range(20)]
    totals = []
    for _ in range(5):
        await asyncio.sleep(PATIENCE_S * 1.01)
        totals.append((slots.total, len(log)))
    assert totals == [(4, 4), (8, 8), (15, 15), (15, 15), (15, 15)]
    await asyncio.gather(*tasks)
    assert len(log) == 20


async def grown(most):
    """So many slots, from two, none of which is in use, after the minute in which all were."""
    slots = Slots(2, most, LoopClock())
    await asyncio.gather(*(use(slots, 5, [], number) for number in range(2 * most)))
    await asyncio.sleep(CALM_S)
    await use(slots, 0, [], "one")
    assert slots.total == most
    return slots


async def test_each_calm_minute_halves_the_slots_down_to_the_first_ones():
    slots, totals = await grown(15), []
    for _ in range(5):
        await asyncio.sleep(CALM_S)
        await use(slots, 0, [], "one")
        totals.append(slots.total)
    assert totals == [8, 4, 2, 2, 2]


@pytest.mark.parametrize(("held", "total"), [(9, 16), (8, 16), (7, 8), (3, 8)])
async def test_slots_that_are_in_use_stay(held, total):
    slots = await grown(16)
    for _ in range(held):
        assert slots.take()
    await asyncio.sleep(CALM_S)
    assert slots.take()
    assert slots.total == total
    free = 0
    while slots.take():
        free += 1
    assert held + 1 + free == slots.total


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 12)), min_size=1, max_size=40))
async def test_cancelled_waiters_lose_no_slots(plan):
    """Each user comes at a moment, holds for a while, and is cancelled after some time."""
    slots, log = Slots(1, 3, LoopClock()), []

    async def one(name, comes, holds, patience):
        await asyncio.sleep(comes / 10)
        try:
            await asyncio.wait_for(use(slots, holds / 10, log, name), patience / 10)
        except TimeoutError:
            pass

    await asyncio.gather(*(one(name, *times) for name, times in enumerate(plan)))
    free = 0
    while slots.take():
        free += 1
    assert free == slots.total <= 3
