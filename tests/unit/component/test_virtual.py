"""The loop on virtual time."""

import asyncio

import pytest

from kcm_cli.component import virtual


def test_time_jumps_to_the_next_timer():
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert virtual.run(main()) == 3600


def test_work_for_another_thread_takes_no_time():
    def work(number: int) -> int:
        return 60 // number

    async def main() -> tuple[int, float]:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(work, 0)
        return await asyncio.to_thread(work, 2), asyncio.get_running_loop().time()

    assert virtual.run(main()) == (30, 0)


def test_waiting_for_nothing_is_told():
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="virtual time stands still"):
        virtual.run(main())
