"""Loops whose clock can be moved, on threads of their own."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kcm_cli.testing.warp import WarpLoop


@contextmanager
def running_loop() -> Iterator[WarpLoop]:
    """A loop that runs while inside. Its tasks are cancelled at the end: what is left of them would be logged whenever
    it is collected, in another test."""
    loop = WarpLoop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    if loop.is_running():
        asyncio.run_coroutine_threadsafe(_ended(), loop).result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)
    loop.close()


async def _ended() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
