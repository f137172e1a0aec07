"""Slots: order, growth, cancellation."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.slots import PATIENCE_S, Slots


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
