"""Full garbage collections."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from kcm_cli.component import garbage
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.memory import Allocator


class Cycle:
    """Refers to itself. It is freed by a collection only."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def nothing_stays_frozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage.time, "process_time", lambda: 0.0)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def test_young_objects_are_collected_and_old_ones_are_not(monkeypatch: pytest.MonkeyPatch, idle: None) -> None:
    """Python does that, by thresholds that end with the task."""
    before, clock = gc.get_threshold(), LoopClock()
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 1)
    old = Cycle()
    freed_old = weakref.ref(old)
    kept: list[list[int]] = []
    _allocate(kept)  # now it is old
    young = Cycle()
    freed_young = weakref.ref(young)
    del old, young
    _allocate(kept)
    assert freed_young() is None
    assert freed_old() is not None
    await _cancelled(task)
    assert gc.get_threshold() == before


async def test_objects_that_take_the_place_of_others_are_collected_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Python's count there are none: it takes off what is freed."""
    clock = LoopClock()
    monkeypatch.setattr(garbage.time, "process_time", clock.monotonic)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 1)
    kept: list[list[int]] = [[] for _ in range(20_000)]
    gc.collect()
    for number in range(len(kept)):
        kept[number] = []
    assert len(gc.get_objects(0)) >= 20_000
    await clock.sleep(garbage.YOUNG_S + 0.01)
    assert len(gc.get_objects(0)) < 2_000
    await clock.sleep(garbage.SECOND * garbage.YOUNG_S)
    assert len(gc.get_objects(1)) < 2_000
    await _cancelled(task)


async def test_a_process_at_rest_collects_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lives for seconds is not old before it is garbage."""
    clock = LoopClock()
    collected: list[int] = []
    monkeypatch.setattr(garbage.time, "process_time", lambda: clock.monotonic() / 200)
    monkeypatch.setattr(garbage.gc, "collect", collected.append)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 100)
    await _cancelled(task)
    assert len(collected) == pytest.approx(100 / 200 / (garbage.AT_REST * garbage.YOUNG_S), abs=1)
    assert collected.count(1) == len(collected) // garbage.SECOND


async def test_many_survivors_are_collected_again_before_they_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of generation 1 takes about as long as those of generation 0 since the last: 60 ms for eight of 8 ms."""
    clock, cpu_s, collection_s = LoopClock(), 0.0, 0.0
    collected: list[int] = []

    def collect(generation: int) -> None:
        nonlocal cpu_s
        collected.append(generation)
        cpu_s += collection_s

    monkeypatch.setattr(garbage.time, "process_time", clock.monotonic)
    monkeypatch.setattr(garbage.time, "thread_time", lambda: cpu_s)
    monkeypatch.setattr(garbage.gc, "collect", collect)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 0.01)
    for took_s, firsts in ((0.9 * garbage.SURVIVED_S, 2), (1.1 * garbage.SURVIVED_S, 1), (1e-4, garbage.SECOND - 1)):
        collection_s = took_s
        while 1 not in collected:  # one of before
            await clock.sleep(garbage.SHORTEST_S)
        collected.clear()
        while collected.count(1) < 3:
            await clock.sleep(garbage.SHORTEST_S)
        assert collected == ([0] * firsts + [1]) * 3
    await _cancelled(task)


class Counting(LoopClock):
    """Counts how often somebody sleeps."""

    sleeps = 0

    async def sleep(self, delay_s: float) -> None:
        self.sleeps += 1
        await super().sleep(delay_s)


async def test_a_process_that_comes_to_rest_wakes_up_as_seldom_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = Counting(), iter(range(1_000_000))
    monkeypatch.setattr(garbage.time, "process_time", lambda: min(clock.monotonic(), busy_until))
    monkeypatch.setattr(garbage.time, "thread_time", lambda: next(calls) * 2 * garbage.LONG_S)
    busy_until = clock.monotonic() + garbage.START_S + 2
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 3)
    before = clock.sleeps
    await clock.sleep(10)
    await _cancelled(task)
    assert clock.sleeps - before <= 10 / garbage.YOUNG_S + 10 / garbage.PERIOD_S + 2


def test_collections_that_take_long_are_more_frequent_and_short_ones_less() -> None:
    pauses = [garbage.YOUNG_S]
    for took_s in [2 * garbage.LONG_S] * 5 + [garbage.LONG_S / 2] * 2 + [garbage.LONG_S / 8] * 5:
        pauses.append(garbage.pause_s(pauses[-1], took_s))
    assert pauses[1] == garbage.YOUNG_S / 2
    assert pauses[4:8] == [garbage.SHORTEST_S] * 4
    assert pauses[8] == 2 * garbage.SHORTEST_S
    assert pauses[-1] == garbage.YOUNG_S


def _allocate(kept: list[list[int]]) -> None:
    kept += ([] for _ in range(garbage.THRESHOLDS[0] * (garbage.THRESHOLDS[1] + 3)))


@pytest.mark.parametrize(("growth", "found"), [(1.4, False), (1.6, True)])
async def test_garbage_among_old_objects_is_found_when_there_is_much(
    monkeypatch: pytest.MonkeyPatch, idle: None, growth: float, found: bool
) -> None:
    clock = LoopClock()
    count = 1000
    monkeypatch.setattr(garbage, "YOUNG_S", garbage.PERIOD_S)
    monkeypatch.setattr(garbage.sys, "getallocatedblocks", lambda: count)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + garbage.PERIOD_S)
    kept = Cycle()
    freed = weakref.ref(kept)
    await clock.sleep(garbage.WHOLE_S + garbage.PERIOD_S)
    del kept
    assert freed() is not None, "the first time, objects are only counted"
    count = int(growth * 1000)
    await clock.sleep(garbage.WHOLE_S - 2 * garbage.PERIOD_S)
    assert freed() is not None
    await clock.sleep(4 * garbage.PERIOD_S)
    await _cancelled(task)
    assert (freed() is None) is found


async def test_a_busy_process_collects_all_objects_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LoopClock()
    thawed: list[float] = []
    monkeypatch.setattr(garbage, "YOUNG_S", garbage.PERIOD_S)
    counts = iter(2**power for power in range(64))
    monkeypatch.setattr(garbage.sys, "getallocatedblocks", lambda: next(counts))
    monkeypatch.setattr(garbage.gc, "unfreeze", lambda: thawed.append(clock.monotonic()))
    monkeypatch.setattr(garbage.time, "process_time", clock.monotonic)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 2.5 * garbage.BUSY_S)
    assert len(thawed) == 1
    monkeypatch.setattr(garbage.time, "process_time", lambda: 0.0)
    await clock.sleep(2.5 * garbage.WHOLE_S)
    await _cancelled(task)
    assert len(thawed) == 4  # the first one at once


def test_a_collector_of_parts_of_all_objects_collects_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of Python 3.14.0 to 3.14.4, which knows no third threshold."""
    given: list[tuple[int, ...]] = []
    monkeypatch.setattr(garbage.gc, "get_threshold", lambda: (*given[-1][:2], 0) if given else (700, 10, 0))
    monkeypatch.setattr(garbage.gc, "set_threshold", lambda *values: given.append(values))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_cancelled_at_once())
    assert given[-2][1] >= 1_000_000


async def test_such_a_collector_is_asked_for_young_objects_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = LoopClock()
    collected: list[int] = []
    monkeypatch.setattr(garbage.gc, "get_threshold", lambda: (700, 10, 0))
    monkeypatch.setattr(garbage.gc, "set_threshold", lambda *values: None)
    monkeypatch.setattr(garbage.gc, "collect", collected.append)
    monkeypatch.setattr(garbage.time, "process_time", clock.monotonic)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(garbage.START_S + 3 * garbage.SECOND * garbage.YOUNG_S)
    await _cancelled(task)
    assert len(collected) > garbage.SECOND
    assert set(collected) == {0}


async def _cancelled_at_once() -> None:
    task = asyncio.create_task(garbage.tidy(LoopClock()))
    await asyncio.sleep(0)
    task.cancel()
    await task


@pytest.mark.parametrize(("cpu_s", "times"), [(0.0, 3), (1.3, 0)], ids=["at rest", "busy"])
async def test_memory_is_given_back_at_rest(monkeypatch: pytest.MonkeyPatch, cpu_s: float, times: int) -> None:
    given: list[float] = []
    clock = LoopClock()
    monkeypatch.setattr(Allocator, "give_back", lambda _: given.append(clock.monotonic()))
    monkeypatch.setattr(garbage.gc, "freeze", lambda: None)
    monkeypatch.setattr(garbage.time, "process_time", lambda: clock.monotonic() / garbage.PERIOD_S * cpu_s)
    task = asyncio.create_task(garbage.tidy(clock))
    await clock.sleep(2 * garbage.TRIM_S + 20)
    await _cancelled(task)
    assert len(given) == times


def test_modules_are_loaded_without_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(garbage.gc, "freeze", lambda: frozen.append(gc.isenabled()))
    with garbage.loading():
        with garbage.no_collections():
            pass
        assert not gc.isenabled()
    assert frozen == [False]
    assert gc.isenabled()
