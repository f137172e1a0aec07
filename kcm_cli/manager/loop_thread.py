"""A thread with its own event loop, which runs coroutines for tasks of another loop.

The server and the leader election run there, so that the controllers' loop cannot delay them.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

from kcm_cli.component.loops import new_event_loop

T = TypeVar("T")
_END_S = 3.0
"""What runs there and does not end when it is cancelled ends with its thread."""


class LoopThread:
    """The thread. Start it once and stop it once."""

    def __init__(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._ended: Future[None] = Future()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, for debugging."""
        return self._loop

    def start(self) -> None:
        """Start the thread with a new loop."""
        self._loop = new_event_loop()
        self._thread.start()

    def submit(self, work: Coroutine[object, object, T]) -> "Future[T]":
        """Start a coroutine on the thread. Cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def call(self, work: Coroutine[object, object, T]) -> T:
        """Run a coroutine on the thread and wait for it. Cancelling the call cancels it."""
        return await asyncio.wrap_future(self.submit(work))

    async def stop(self) -> None:
        """Cancel the thread's tasks and end it."""
        await self.call(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.wrap_future(self._ended)  # not on an executor's thread: there may be none
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        self._ended.set_running_or_notify_cancel()  # a wait that is cancelled does not cancel it
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._ended.set_result(None)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_END_S)
    await asyncio.get_running_loop().shutdown_asyncgens()
