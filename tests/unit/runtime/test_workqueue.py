"""The queue's promises: no key lost, none twice at once, retries with growing delays."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.component.clock import LoopClock
from kcm_cli.runtime.workqueue import RetryLimiter, ShutDown, WorkQueue


def queue() -> WorkQueue:
    return WorkQueue("test", LoopClock())


async def test_a_key_added_twice_is_taken_once() -> None:
    q = queue()
    q.add("a")
    q.add("a")
    assert await q.get() == "a"
    assert len(q) == 0


async def test_a_key_added_while_processing_is_requeued_after_done() -> None:
    q = queue()
    q.add("a")
    await q.get()
    q.add("a")
    assert len(q) == 0
    q.done("a")
    assert await q.get() == "a"


async def test_keys_are_dequeued_in_order() -> None:
    q = queue()
    for key in "abc":
        q.add(key)
    assert [await q.get() for _ in range(3)] == ["a", "b", "c"]


async def test_of_several_delays_the_earliest_counts() -> None:
    q, clock = queue(), LoopClock()
    q.add_after("a", 60)
    q.add_after("a", 10)
    q.add_after("a", 30)
    start = clock.monotonic()
    await q.get()
    assert clock.monotonic() - start == 10
    q.done("a")
    assert q.idle


async def test_a_waiter_cancelled_after_its_wakeup_wakes_another() -> None:
    q = queue()
    first = asyncio.ensure_future(q.get())
    second = asyncio.ensure_future(q.get())
    await asyncio.sleep(0)
    q.add("a")
    first.cancel()
    assert await second == "a"


async def test_shut_down_wakes_all_waiters() -> None:
    q = queue()
    waiter = asyncio.ensure_future(q.get())
    await asyncio.sleep(0)
    q.shut_down()
    with pytest.raises(ShutDown):
        await waiter
    q.add("late")
    assert len(q) == 0


async def test_without_a_delay_a_key_is_queued_at_once_and_never_after_shut_down() -> None:
    q = queue()
    q.add_after("now", 0.0)
    assert await q.get() == "now"
    q.add_after("later", 5.0)
    q.shut_down()
    q.add_after("late", 1.0)
    q.add_after("late", 0.0)
    await asyncio.sleep(10)
    assert len(q) == 0


def test_delays_double_up_to_the_maximum_until_forget() -> None:
    limiter = RetryLimiter(rate=1e9)
    delays = [limiter.when("a", 0.0) for _ in range(20)]
    assert delays[:4] == [0.005, 0.01, 0.02, 0.04]
    assert delays[-1] == 1000.0
    assert limiter.failures("a") == 20
    limiter.forget("a")
    assert limiter.when("a", 0.0) == 0.005


def test_beyond_the_burst_all_keys_share_the_rate() -> None:
    limiter = RetryLimiter()
    delays = [limiter.when(f"k{n}", 0.0) for n in range(120)]
    assert max(delays[:100]) == 0.005
    assert delays[119] == pytest.approx(2.0)


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.sampled_from("abc")), max_size=60))
async def test_no_key_runs_twice_at_once_and_none_is_lost(steps: list[tuple[str, str]]) -> None:
    q = queue()
    running: set[str] = set()
    wanted: set[str] = set()
    for step, key in steps:
        if step == "add":
            q.add(key)
            wanted.add(key)
        elif step == "take" and len(q):
            taken = await q.get()
            assert taken not in running
            running.add(taken)
            wanted.discard(taken)
        elif step == "done" and key in running:
            running.discard(key)
            q.done(key)
    for key in sorted(running):
        q.done(key)
    assert {await q.get() for _ in range(len(q))} == wanted


class _Seen:
    def __init__(self) -> None:
        self.depths: list[int] = []
        self.retries = 0

    def added(self, key: str, depth: int, now: float) -> None:
        self.depths.append(depth)

    def taken(self, key: str, depth: int, now: float) -> None:
        self.depths.append(depth)

    def finished(self, key: str, now: float) -> None: ...

    def retried(self) -> None:
        self.retries += 1


async def test_every_key_that_is_added_after_a_delay_counts_as_a_retry() -> None:
    seen = _Seen()
    q = WorkQueue("test", LoopClock(), metrics=seen)
    q.add("a")
    assert seen.retries == 0
    q.add_after("b", 60.0)
    q.add_after("c", 0.0)
    q.add_rate_limited("d")
    assert seen.retries == 3
    q.add_after("e", 60.0, retry=False)
    assert seen.retries == 3


async def test_metrics_count_a_key_from_its_addition() -> None:
    seen = _Seen()
    q = WorkQueue("test", LoopClock(), metrics=seen)
    q.add("a")
    await q.get()
    q.add("a")  # in work: it waits all the same
    q.done("a")
    await q.get()
    assert seen.depths == [1, 0, 1, 0]
