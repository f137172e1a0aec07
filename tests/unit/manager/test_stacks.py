"""The stacks that SIGQUIT writes."""

import asyncio
import weakref

from kcm_cli.manager import stacks


class Thing:
    """Something to refer to."""


def test_tasks_are_found_among_proxy_objects() -> None:
    proxy = weakref.proxy(Thing())  # what it stands for is deleted: each question to it raises ReferenceError

    async def main() -> str:
        sleeper = asyncio.create_task(asyncio.sleep(60), name="sleeper")
        await asyncio.sleep(0)
        text = "".join(stacks.tasks())
        sleeper.cancel()
        return text

    assert "task sleeper:" in asyncio.run(main())
    del proxy
