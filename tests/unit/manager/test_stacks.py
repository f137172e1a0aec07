"""The stacks that SIGQUIT writes."""

import asyncio
import gc
import weakref

import pytest

from kcm_cli.manager import stacks

pytestmark = pytest.mark.real_time


class Thing:
    """Something to refer to."""


async def test_tasks_are_found_among_proxy_objects() -> None:
    proxy = weakref.proxy(Thing())  # what it stands for is deleted: each question to it raises ReferenceError
    sleeper = asyncio.create_task(asyncio.sleep(60), name="sleeper")
    await asyncio.sleep(0)
    text = "".join(stacks.tasks())
    sleeper.cancel()
    assert "task sleeper:" in text
    del proxy


async def test_tasks_are_found_that_the_garbage_collector_no_longer_looks_at() -> None:
    sleeper = asyncio.create_task(asyncio.sleep(60), name="sleeper")
    await asyncio.sleep(0)
    gc.freeze()
    text = "".join(stacks.tasks())
    sleeper.cancel()
    assert "task sleeper:" in text
