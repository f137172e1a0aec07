"""Passes over all objects from time to time, beside the workers.

A pass that fails does not end the loop: the error is logged, and the next pass comes at its time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.engine.context import Runnable
from kcm_cli.machinery.meta import Object
from kcm_cli.rest.transport import RequestError

T = TypeVar("T", bound=Object)

log = logging.getLogger(__name__)

OBJECTS = 50


class Together(msgspec.Struct, frozen=True):
    """Runs several parts until one of them fails or all are cancelled."""

    parts: tuple[Runnable, ...]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for part in self.parts:
                group.create_task(part.run())


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """Repeats ``step``, ``pause_s()`` seconds after it has ended; the first time after ``delay_s`` seconds.

    ``name``: the controller's name, for the log.
    """

    name: str
    clock: Clock
    step: Callable[[], Awaitable[None]]
    pause_s: Callable[[], float]
    delay_s: float = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        await self.clock.sleep(self.delay_s)
        while True:
            await self._pass()
            await self.clock.sleep(self.pause_s())

    async def _pass(self) -> None:
        try:
            await self.step()
        except Exception as error:  # where the errors of a pass end, as those of a sync in the worker
            fields = {"controller": self.name, "err": str(error)}
            log.error("Pass failed, the next one comes in its time", extra={"fields": fields}, exc_info=error)


async def for_each(name: str, objects: Iterable[T], step: Callable[[T], Awaitable[None]], *, workers: int = 1) -> None:
    """Call ``step`` with each object, ``workers`` of them at once. Yields to the loop every OBJECTS objects.

    An error of one object is logged under ``name``, and the pass continues.
    """
    left = iter(objects)

    async def work() -> None:
        for number, obj in enumerate(left, 1):
            try:
                await step(obj)
            except Exception as error:  # where the errors of one object of a pass end, as those of a sync in the worker
                fields = {"controller": name, "key": obj.key, "err": str(error)}
                expected = isinstance(error, RequestError)
                text = "Object skipped until the next pass"
                log.error(text, extra={"fields": fields}, exc_info=None if expected else error)
            if number % OBJECTS == 0:
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(work())
