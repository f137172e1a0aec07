"""Background tasks: named, watched, and stopped in reverse order.

An error that ends a task is reported to ``on_error`` and never lost.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")
_LEAST_S = 0.1
"""The time that each cancelled task has to end."""


class Stopped(Exception):
    """The event was set before the awaited work ended."""


async def unless(stop: asyncio.Event, work: Coroutine[object, object, T]) -> T:
    """The result of the work; Stopped, with the work cancelled, if the event is set first or when the work fails."""
    task = asyncio.ensure_future(work)
    waiter = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, waiter), return_when=asyncio.FIRST_COMPLETED)
        if not task.done() or (stop.is_set() and (task.cancelled() or task.exception() is not None)):
            raise Stopped
        return await task
    finally:
        for one in (task, waiter):
            one.cancel()
        await asyncio.wait((task, waiter))


def innermost(error: BaseException) -> BaseException:
    """The first error in nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Tasks:
    """A set of background tasks that are stopped together."""

    def __init__(self, on_error: Callable[[str, BaseException], None]) -> None:
        self._on_error = on_error
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Start a task. ``stop`` cancels it if it has not ended."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._ended)
        return task

    async def run(self) -> None:
        """Run until cancelled, then stop all tasks."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self.stop()

    async def stop(self, within_s: float | None = None) -> None:
        """Cancel all tasks, the last one first, and wait for each, including tasks that are started meanwhile.

        ``within_s``: the time for all of them; tasks that have not ended by then are logged and left.
        """
        loop = asyncio.get_running_loop()
        until = None if within_s is None else loop.time() + within_s
        while self._tasks:
            task = self._tasks[-1]
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=None if until is None else max(_LEAST_S, until - loop.time()))
            if not done:
                log.error("Task did not end in time", extra={"fields": {"task": task.get_name()}})
            if task in self._tasks:  # it ended before and was not reported yet, or it did not end in time
                self._tasks.remove(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._on_error(task.get_name(), error)
