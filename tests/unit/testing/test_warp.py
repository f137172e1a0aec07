"""A loop in real time whose clock can be moved forward."""

import asyncio
import threading
import time
from collections.abc import Coroutine, Iterator

import pytest

from kcm_cli.component.clock import RealClock, in_real_time
from kcm_cli.testing import warp
from kcm_cli.testing.warp import GivenUp, Stalled, WarpLoop
from tests.kit.warp_loops import running_loop


@pytest.fixture
def loop() -> Iterator[WarpLoop]:
    with running_loop() as made:
        yield made


def on(loop: WarpLoop, work):
    return asyncio.run_coroutine_threadsafe(work, loop).result(5)


def test_timers_fire_in_order_at_their_times(loop: WarpLoop) -> None:
    seen: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        start = loop.time()
        await asyncio.sleep(seconds)
        seen.append((name, round(loop.time() - start)))

    for name, seconds in (("c", 3000), ("a", 1000), ("b", 2000)):
        asyncio.run_coroutine_threadsafe(sleeper(name, seconds), loop)
    loop.advance(2500, patience_s=0)
    assert seen == [("a", 1000), ("b", 2000)]
    loop.advance(600, patience_s=0)
    assert seen == [("a", 1000), ("b", 2000), ("c", 3000)]


def test_work_of_timers_is_done_when_advance_returns(loop: WarpLoop) -> None:
    seen: list[int] = []

    async def chain() -> None:
        await asyncio.sleep(10)
        for number in range(100):
            await asyncio.sleep(0)
            seen.append(number)

    asyncio.run_coroutine_threadsafe(chain(), loop)
    loop.advance(11, patience_s=0)
    assert len(seen) == 100


def test_between_advances_time_is_real(loop: WarpLoop) -> None:
    async def now() -> float:
        return loop.time()

    outer = time.monotonic()
    start = on(loop, now())
    inner = time.monotonic()
    on(loop, asyncio.sleep(0.05))
    least = time.monotonic() - inner
    passed = on(loop, now()) - start
    assert least <= passed <= time.monotonic() - outer
    loop.advance(100, patience_s=0)
    assert on(loop, now()) - start >= 100


def test_a_test_that_stops_the_clock_of_its_process_stops_no_loop(loop: WarpLoop, monkeypatch) -> None:
    """As freezegun does, whose clock jumps to the time of day, too."""
    follower = loop.follower()
    before = loop.time(), follower.time(), RealClock().monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: 1.7e9)
    on(loop, asyncio.sleep(0.01))
    loop.advance(5, patience_s=0)
    passed = loop.time() - before[0], follower.time() - before[1], RealClock().monotonic() - before[2]
    assert all(0.01 <= seconds < 1000 for seconds in passed)
    follower.close()


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan")])
def test_invalid_numbers_of_seconds(loop: WarpLoop, seconds: float) -> None:
    with pytest.raises(ValueError, match="time can be advanced"):
        loop.advance(seconds)


def test_the_loop_itself_cannot_wait_for_its_own_time(loop: WarpLoop) -> None:
    async def wrong() -> None:
        loop.advance(1)

    with pytest.raises(RuntimeError, match="another thread"):
        on(loop, wrong())


def test_a_loop_that_is_never_idle_is_reported_with_its_callbacks(loop: WarpLoop) -> None:
    async def restless() -> None:
        while True:
            await asyncio.sleep(0)

    async def start() -> asyncio.Task[None]:
        return asyncio.create_task(restless(), name="restless")

    task = on(loop, start())
    words = "^the loop always has something to do, 10 s of its time are left; pending: restless$"
    with pytest.raises(Stalled, match=words):
        loop.advance(10, patience_s=0, stalled_s=0.05)
    loop.call_soon_threadsafe(task.cancel)
    loop.advance(10, patience_s=0)


def test_a_process_that_gets_no_processor_is_waited_for(loop: WarpLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It seems never to be idle, but has not had CPU time."""
    monkeypatch.setattr(warp.time, "process_time", lambda: 1.0)
    ends = time.monotonic() + 0.15

    async def busy() -> None:
        while time.monotonic() < ends:
            await asyncio.sleep(0)

    task = on(loop, _started(busy()))
    loop.advance(10, patience_s=0, stalled_s=0.1)
    assert task.done()


async def _started(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


def ticks(loop: WarpLoop) -> list[float]:
    """The loop's time at each second that it has come through; more and more."""
    seen: list[float] = []

    async def tick() -> None:
        while True:
            seen.append(loop.time())
            await asyncio.sleep(1)

    asyncio.run_coroutine_threadsafe(tick(), loop)
    return seen


def test_an_advance_that_is_interrupted_goes_no_further(loop: WarpLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """By Ctrl-C, or a time limit of the test."""
    seen = ticks(loop)

    def interrupted(*_: object) -> None:
        while len(seen) < 10:
            time.sleep(0.001)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_await", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.advance(1e9)
    on(loop, asyncio.sleep(0))
    on(loop, asyncio.sleep(0))
    count = len(seen)
    time.sleep(0.05)  # for the loop, that may be any time
    assert len(seen) <= count + 10


def test_an_advance_that_is_given_up_ends(loop: WarpLoop) -> None:
    seen = ticks(loop)
    with pytest.raises(GivenUp):
        loop.advance(1e9, given_up=lambda: len(seen) > 10)
    count = len(seen)
    time.sleep(0.05)
    assert 10 < len(seen) <= count + 10
    loop.advance(20)
    assert len(seen) >= count + 20


def test_a_loop_that_has_ended_has_no_time(loop: WarpLoop) -> None:
    loop.call_soon_threadsafe(loop.stop)
    with pytest.raises(RuntimeError, match="the loop has ended"):
        loop.advance(10, patience_s=0, stalled_s=0.05)


def test_work_that_was_given_to_a_thread_takes_no_time(loop: WarpLoop) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        begun.set()
        go_on.wait(5)

    async def work() -> float:
        start = loop.time()
        async with asyncio.timeout(60):
            await loop.run_in_executor(None, slowly)
        return loop.time() - start

    asked = asyncio.run_coroutine_threadsafe(work(), loop)
    assert begun.wait(5)
    journey = threading.Thread(target=loop.advance, args=(3600,))
    journey.start()
    on(loop, asyncio.sleep(0))
    go_on.set()
    assert asked.result(5) < 60
    journey.join(5)
    assert not journey.is_alive()


def test_time_is_held_for_what_is_outside(loop: WarpLoop) -> None:
    answered: list[asyncio.Event] = []

    async def ask() -> float:
        start = loop.time()
        answered.append(asyncio.Event())
        with in_real_time():
            await answered[0].wait()
        return loop.time() - start

    asked = asyncio.run_coroutine_threadsafe(ask(), loop)
    on(loop, asyncio.sleep(0))
    journey = threading.Thread(target=loop.advance, args=(3600,))
    journey.start()
    on(loop, asyncio.sleep(0))
    loop.call_soon_threadsafe(answered[0].set)
    assert asked.result(5) < 60
    journey.join(5)
    assert not journey.is_alive()
