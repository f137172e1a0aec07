"""The order and the timeouts of the scheduling queue, on virtual time."""

import asyncio

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.scheduler import queue as scheduling_queue
from kcm_cli.sandbox.scheduler.queue import EARLY_BURST, SchedulingQueue
from tests.unit.sandbox.scheduler.build import pod

FIT = frozenset(("NodeResourcesFit",))


async def taken(queue):
    try:
        return (await asyncio.wait_for(queue.pop(), 0.001)).info.pod.name
    except TimeoutError:
        return None


@pytest.fixture
def clock():
    return LoopClock()


@pytest.fixture
def queue(clock):
    return SchedulingQueue(clock)


async def test_priority_first_then_who_waited_longest(queue, clock):
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.add(pod(name, priority=priority))
        await clock.sleep(1)
    assert [await taken(queue) for _ in range(5)] == ["b", "d", "a", "c", None]


async def test_a_pod_that_fits_nowhere_waits_for_a_change_that_matters(queue, clock):
    queue.add(pod("a"))
    assert await taken(queue) == "a"
    queue.fail("default/a", FIT)
    await clock.sleep(60)
    queue.wake(frozenset(("VolumeBinding",)))
    assert await taken(queue) is None
    queue.wake(FIT)
    assert await taken(queue) == "a"


async def test_a_change_of_which_it_cannot_be_told_whether_it_helps_may_help(queue, clock):
    for name in "abc":
        queue.add(pod(name))
        await queue.pop()
        queue.fail(f"default/{name}", FIT)
    await clock.sleep(60)

    def helps(info, by):
        if info.pod.name == "a":
            raise ValueError("odd")
        return info.pod.name == "c"

    queue.wake_where(helps)
    assert [await taken(queue) for _ in range(3)] == ["a", "c", None]


async def test_many_waiting_pods_are_looked_at_in_turns(queue, clock, monkeypatch):
    monkeypatch.setattr(scheduling_queue, "AT_ONCE", 2)
    for name in "abc":
        queue.add(pod(name))
        await queue.pop()
        queue.fail(f"default/{name}", FIT)
    await clock.sleep(60)
    asked = []

    def helps(info, by):
        asked.append(info.pod.name)
        return info.pod.name != "b"

    queue.wake_where(helps)
    queue.wake(frozenset(("VolumeBinding",)))
    queue.remove("default/a")
    assert not asked
    running = asyncio.create_task(queue.run())
    assert [await taken(queue) for _ in range(2)] == ["c", None]
    assert asked == ["b", "c"]
    queue.wake(FIT)
    assert [await taken(queue) for _ in range(2)] == ["b", None]
    for name in "bcd":
        queue.add(pod(name))
        queue.fail(f"default/{name}", FIT)
    await clock.sleep(60)
    for _ in range(scheduling_queue.MOST_CHANGES + 1):  # too many are not remembered, but one may help
        queue.wake(frozenset(("VolumeBinding",)))
    assert sorted([await taken(queue) for _ in range(3)]) == ["b", "c", "d"]
    running.cancel()


async def test_an_idle_scheduler_does_not_wait_for_the_backoff(queue, clock):
    for name, priority in (("a", 0), ("b", 5)):
        queue.add(pod(name, priority=priority))
        await queue.pop()
        queue.fail(f"default/{name}", FIT)
    queue.wake(FIT)
    queue.add(pod("new"))
    assert [await taken(queue) for _ in range(4)] == ["new", "b", "a", None]
    await clock.sleep(60)
    assert await taken(queue) is None


async def test_only_some_of_many_waiting_pods_skip_the_backoff(queue, clock):
    for number in range(EARLY_BURST + 10):
        queue.add(pod(f"p{number}"))
        await queue.pop()
        queue.fail(f"default/p{number}", FIT)
    queue.wake(FIT)
    early = 0
    while await taken(queue) is not None:
        early += 1
    assert EARLY_BURST <= early < EARLY_BURST + 10
    await clock.sleep(2)
    assert await taken(queue) is not None


async def test_pods_that_failed_without_a_plugin_wait_for_the_backoff(queue, clock):
    queue.add(pod("a"))
    waits = []
    for _ in range(6):
        await queue.pop()
        failed_at = clock.monotonic()
        queue.fail("default/a", frozenset())
        assert await taken(queue) is None
        await queue.pop()
        waits.append(clock.monotonic() - failed_at)
        queue.fail("default/a", frozenset())
        queue.wake(FIT)
        await clock.sleep(20)
    assert waits == pytest.approx([1, 4, 10, 10, 10, 10])


async def test_failed_pods_are_queued_behind_others(queue, clock):
    queue.add(pod("a"))
    await clock.sleep(1)
    queue.add(pod("b"))
    assert await taken(queue) == "a"
    await clock.sleep(1)
    queue.fail("default/a", FIT)
    await clock.sleep(10)
    queue.wake(FIT)
    assert [await taken(queue), await taken(queue)] == ["b", "a"]


async def test_a_changed_pod_is_queued_again_and_a_deleted_one_is_not(queue, clock):
    queue.add(pod("a"))
    await queue.pop()
    queue.fail("default/a", FIT)
    await clock.sleep(5)
    queue.add(pod("a", cpu="1"))
    assert await taken(queue) is None
    queue.add(pod("a", cpu="1"), lambda info, plugins: plugins == FIT)
    assert await taken(queue) == "a"
    queue.fail("default/a", FIT)
    queue.wake(FIT)
    queue.remove("default/a")
    await clock.sleep(60)
    assert await taken(queue) is None


async def test_unschedulable_pods_are_retried_after_a_timeout(queue, clock):
    queue.add(pod("a"))
    await queue.pop()
    queue.fail("default/a", FIT)
    await clock.sleep(299)
    queue.flush()
    assert await taken(queue) is None
    await clock.sleep(1)
    queue.flush()
    assert await taken(queue) == "a"


async def test_a_recreated_pod_has_no_backoff(queue):
    queue.add(pod("a"))
    await queue.pop()
    queue.fail("default/a", FIT)
    queue.add(pod("a", metadata={"uid": "other"}))
    assert await taken(queue) == "a"
