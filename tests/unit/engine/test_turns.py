"""A long loop yields to other tasks."""

import asyncio

from kcm_cli.engine.passes import in_turns


async def test_others_run_after_each_few_items() -> None:
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
