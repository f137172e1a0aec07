"""A thread with its own event loop, on which coroutines of another loop's tasks are run and waited for.

The server and the leader election live there: whatever the controllers' loop does, they are served.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
_END_S = 3.0
"""What runs there and does not end when it is cancelled ends with its thread."""


class LoopThread:
    """Started once, stopped once."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, for debugging."""
        return self._loop

    def start(self) -> None:
        """Run a new loop."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def submit(self, work: Coroutine[object, object, T]) -> "Future[T]":
        """Start a coroutine there; cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def call(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine there and wait for it here; cancelling this cancels it."""
        return await asyncio.wrap_future(self.submit(work))

    async def stop(self) -> None:
        """Cancel what runs there and end the thread."""
        await self.call(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_END_S)
    await asyncio.get_running_loop().shutdown_asyncgens()
