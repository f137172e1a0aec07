"""The loop on virtual time."""

import asyncio

import pytest

from kcm_cli.component import virtual


def test_time_jumps_to_the_next_timer():
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) == 3600


def test_a_result_is_not_formatted_as_text():
    """That of a plan has all objects of a cluster."""

    formatted: list[object] = []

    class Large:
        def __repr__(self) -> str:
            formatted.append(self)
            return "large"

    async def main() -> Large:
        return Large()

    assert isinstance(virtual.run(main()), Large)
    assert not formatted


def test_a_timer_does_not_fire_early():
    """Or who waits for what is left would wait again and again, in no time: 0.05 + (0.21 - 0.05) is less than 0.21."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        loop.call_at(0.05, int)
        loop.call_at(0.21, lambda: ended.set_result(loop.time()))
        return await ended

    assert virtual.run(main()) == 0.21


def test_work_for_another_thread_takes_no_time():
    def work(number: int) -> int:
        return 60 // number

    async def main() -> tuple[int, float]:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(work, 0)
        return await asyncio.to_thread(work, 2), asyncio.get_running_loop().time()

    assert virtual.run(main()) == (30, 0)


def test_waiting_without_timers_is_an_error():
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="virtual time stands still"):
        virtual.run(main())
