"""Turns of an event loop, and the steps of what runs on it."""

import asyncio
import time
from collections import Counter
from typing import Any

import pytest

from kcm_cli.component.metrics import Registry
from kcm_cli.runtime.turns import (
    PART_S,
    TURN_S,
    Longest,
    Timed,
    Turns,
    drained,
    in_turns,
    joined_in_turns,
    made_in_turns,
)
from tests.kit.controlling import metric


@pytest.mark.real_time
async def test_a_turn_is_over_after_its_time_and_the_next_one_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    turns = Turns.of_loop()
    assert turns is Turns.of_loop()
    for _ in range(2):
        assert not turns.is_over()
        now += TURN_S
        assert not turns.is_over()
        now += 0.001
        assert turns.is_over()
        await asyncio.sleep(0)


@pytest.mark.real_time
async def test_a_pause_waits_only_if_the_turn_is_over_and_the_next_one_is_measured_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    turns, others = Turns.of_loop(), list[float]()
    turns.begin()
    asyncio.get_running_loop().call_soon(lambda: others.append(now))
    now = TURN_S / 2
    await turns.pause()
    assert not others
    now = TURN_S * 2
    await turns.pause()
    assert others == [now]
    now += TURN_S * 1.5
    assert turns.is_over(), "all of the new turn counts"


@pytest.mark.real_time
async def test_short_steps_of_long_work_have_their_part_of_each_turn_beside_others_who_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    turns, others = Turns.of_loop(), 0

    async def crowd() -> None:
        nonlocal now, others
        while True:
            others += 1
            now += TURN_S
            await turns.next()

    crowded = asyncio.create_task(crowd())
    await asyncio.sleep(0)
    for _ in range(1000):
        now += PART_S / 100
        await turns.step()
    crowded.cancel()
    assert 1 < others < 20


@pytest.mark.real_time
async def test_those_who_wait_go_on_in_order_and_a_turn_has_only_as_many_as_it_has_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    turns, done, turn = Turns.of_loop(), list[tuple[int, int]](), 0

    async def count() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def piece(number: int) -> None:
        nonlocal now
        await turns.pause()
        now += TURN_S / 4
        done.append((turn, number))

    counting = asyncio.create_task(count())
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(piece(number)) for number in range(200)]
        await asyncio.sleep(0)
        assert len(done) == 5  # then this turn was over
        tasks[9].cancel()  # who gives up is in nobody's way
    counting.cancel()
    assert [number for _, number in done] == [number for number in range(200) if number != 9]
    each = Counter(turn for turn, _ in done)
    assert max(each.values()) <= 6
    assert turn < 150, "nor is a turn much shorter"


@pytest.mark.real_time
async def test_someone_who_comes_later_does_not_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    turns, order = Turns.of_loop(), list[str]()

    async def wait(name: str) -> None:
        await turns.pause()
        order.append(name)

    turns.begin()
    now = 2 * TURN_S
    first = asyncio.create_task(wait("first"))
    await asyncio.sleep(0)
    now += TURN_S / 8  # the next turn is not over
    await asyncio.gather(first, wait("second"))
    assert order == ["first", "second"]


class LongTurns:
    """A clock, and a task that makes each turn long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.passes = 0.0, 0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        self.task = asyncio.create_task(self._work())

    async def _work(self) -> None:
        while True:
            self.now += 4 * TURN_S
            self.passes += 1
            await asyncio.sleep(0)


@pytest.mark.real_time
async def test_those_who_wait_have_their_part_of_a_turn_that_others_make_long(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, others = Turns.of_loop(), LongTurns(monkeypatch)

    async def piece() -> None:
        await turns.next()
        others.now += TURN_S / 20

    await asyncio.gather(*(piece() for _ in range(200)))
    others.task.cancel()
    assert others.passes < 40


@pytest.mark.real_time
async def test_one_who_waits_has_as_much_of_a_turn_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, others = Turns.of_loop(), LongTurns(monkeypatch)
    for _ in range(200):
        others.now += TURN_S / 20
        if turns.is_over():
            await turns.next()
    others.task.cancel()
    assert others.passes < 40


@pytest.mark.real_time
async def test_the_last_one_of_a_turn_that_is_used_up_has_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    turns, made = Turns.of_loop(), list[int]()

    async def long() -> None:
        nonlocal now
        await turns.next()
        now += 2 * TURN_S

    async def steps() -> None:
        nonlocal now
        await turns.next()
        made.append(0)
        while not turns.is_over():
            now += PART_S / 8
            made[-1] += 1

    short = [turns.next() for _ in range(20)]  # so that a turn admits several
    await asyncio.gather(*short, long(), steps(), *(turns.next() for _ in range(20)))
    assert made[0] in (8, 9), "of 8, as sums of floats go"


async def test_virtual_time_has_no_turns() -> None:
    turns = Turns.of_loop()
    turns.begin()
    until = time.perf_counter() + 2 * TURN_S
    while time.perf_counter() < until:
        pass
    assert not turns.is_over()


@pytest.mark.real_time
async def test_a_long_answer_has_its_part_of_each_turn_however_long_others_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = LongTurns(monkeypatch)
    waiting = [asyncio.create_task(Turns.of_loop().next()) for _ in range(100)]

    def make(number: int) -> int:
        others.now += 0.4 * PART_S
        return -number

    assert await made_in_turns(make, range(10)) == [-number for number in range(10)]
    assert others.passes == 3
    others.task.cancel()
    await asyncio.wait(waiting)


async def test_a_long_answer_is_joined_in_parts() -> None:
    assert await joined_in_turns(b"%d," % number for number in range(1000)) == b"".join(
        b"%d," % number for number in range(1000)
    )
    assert await joined_in_turns(()) == b""


async def test_a_long_loop_lets_others_run_after_each_few_items() -> None:
    seen: list[object] = []

    async def other() -> None:
        for _ in range(3):
            seen.append("other")
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for item in in_turns(range(5), 2):
        seen.append(item)
    await task
    assert seen == [0, 1, "other", 2, 3, "other", 4, "other"]


async def test_who_leaves_a_shared_loop_ends_it_for_nobody_else() -> None:
    """As a worker of for_each whose step was cancelled."""
    left, seen = drained(list(range(5))), list[int]()
    first = in_turns(left, 2)
    seen.append(await anext(first))
    await first.aclose()
    async for item in in_turns(left, 2):
        seen.append(item)
    assert seen == [0, 1, 2, 3, 4]


class Odd(Exception):
    """An error of the work."""


async def work(steps: list[str]) -> str:
    steps.append("a")
    await asyncio.sleep(0)
    future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, "b")
    steps.append(await future)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        steps.append("cancelled")
        raise
    return "end"


def test_steps_are_reported_and_everything_else_passes_through() -> None:
    async def life() -> tuple[list[str], list[float]]:
        steps: list[str] = []
        spent: list[float] = []
        task = asyncio.ensure_future(_run(work(steps), spent))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return steps, spent

    steps, spent = asyncio.run(life())
    assert steps == ["a", "b", "cancelled"] and len(spent) == 4 and min(spent) >= 0


async def _run(what: Any, spent: list[float]) -> Any:
    return await Timed(what, spent.append)


def test_results_and_errors_pass() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise Odd

    async def answer() -> int:
        await asyncio.sleep(0)
        return 7

    spent: list[float] = []
    assert asyncio.run(_run(answer(), spent)) == 7
    with pytest.raises(Odd):
        asyncio.run(_run(fail(), spent))
    assert len(spent) == 4


@pytest.mark.real_time
async def test_a_cancellation_that_the_work_handles_goes_on() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "done"

    task = asyncio.ensure_future(_run(stubborn(), []))
    await asyncio.sleep(0)
    task.cancel()
    assert str(await task) == "done"


def test_the_longest_step_of_a_controller_is_a_metric_and_a_long_one_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = Registry()
    longest = Longest(registry, "job-controller")
    for seconds in (0.01, 0.2, 0.15, 0.3):
        longest(seconds)
    assert metric(registry, "kcm_controller_longest_turn_seconds", controller="job-controller") == 0.3
    assert [vars(one)["fields"]["duration_s"] for one in caplog.records] == [0.2, 0.3]
