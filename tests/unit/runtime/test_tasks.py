import asyncio

import pytest

from kcm_cli.runtime.tasks import Stopped, Tasks, innermost, unless


def test_the_first_error_of_nested_groups() -> None:
    error = ValueError("x")
    assert innermost(ExceptionGroup("a", [ExceptionGroup("b", [error])])) is error


@pytest.mark.real_time
async def test_tasks_started_during_shutdown_are_ended() -> None:
    tasks = Tasks(lambda name, error: None)

    async def starts_another() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tasks.start("late", asyncio.sleep(3600))

    tasks.start("early", starts_another())
    await asyncio.sleep(0)
    await tasks.stop()
    assert ({task.get_name() for task in asyncio.all_tasks()} & {"early", "late"}) == set()


@pytest.mark.real_time
async def test_a_task_that_has_just_ended_does_not_block() -> None:
    tasks = Tasks(lambda name, error: None)
    ended = tasks.start("short", asyncio.sleep(0))
    asyncio.get_running_loop().call_later(0.0, ended.cancel)
    await asyncio.wait([ended])
    await tasks.stop()
    assert ended.done()


async def test_a_task_that_does_not_end_is_abandoned_after_a_timeout() -> None:
    ended = list[str]()

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                if ended:
                    raise
                ended.append("cancelled")

    async def ordinary() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("ordinary")

    tasks = Tasks(lambda name, error: None)
    tasks.start("ordinary", ordinary())
    left = tasks.start("stubborn", stubborn())
    await asyncio.sleep(1)
    started = asyncio.get_running_loop().time()
    await tasks.stop(2)
    assert asyncio.get_running_loop().time() - started < 3
    assert ended == ["cancelled", "ordinary"]
    assert not left.done()
    left.cancel()
    await asyncio.wait([left])


async def test_work_continues_unless_it_is_stopped() -> None:
    async def work() -> int:
        await asyncio.sleep(5)
        return 7

    assert await unless(asyncio.Event(), work()) == 7


async def test_work_that_is_stopped_is_cancelled_and_has_ended() -> None:
    stop, ended = asyncio.Event(), list[float]()

    async def work() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(2)
            ended.append(asyncio.get_running_loop().time())

    asyncio.get_running_loop().call_later(5, stop.set)
    started = asyncio.get_running_loop().time()
    with pytest.raises(Stopped):
        await unless(stop, work())
    assert [at - started for at in ended] == [7.0]


async def test_the_error_of_work_is_raised_and_that_of_a_task_reported() -> None:
    async def fails() -> None:
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        await unless(asyncio.Event(), fails())
    reported = list[tuple[str, str]]()
    tasks = Tasks(lambda name, error: reported.append((name, str(error))))
    tasks.start("one", fails())
    await asyncio.sleep(1)
    assert reported == [("one", "x")]
    await tasks.stop()
