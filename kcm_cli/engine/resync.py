"""A controller that looks at everything again from time to time, changed or not."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kcm_cli.component.clock import Clock
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.machinery.meta import Object
from kcm_cli.runtime.informer import Informer

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class Together:
    """Runs several parts until one of them fails or all are cancelled."""

    parts: tuple[Runnable, ...]

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for part in self.parts:
                group.create_task(part.run())


@dataclass(frozen=True, slots=True)
class Periodic:
    """Calls ``action`` every ``period_s`` seconds, the first time after one period."""

    clock: Clock
    period_s: float
    action: Callable[[], None]

    async def run(self) -> None:
        while True:
            await self.clock.sleep(self.period_s)
            self.action()


def with_resync(
    worker: Runnable,
    informer: Informer[T],
    period_s: float,
    changed: Callable[[T], None],
    context: ControllerContext,
) -> Runnable:
    """The worker, and every ``period_s`` each cached object given to ``changed`` again. 0: no resync."""

    def again() -> None:
        for obj in informer.store.list():
            changed(obj)

    return worker if period_s <= 0 else Together((worker, Periodic(context.clock, period_s, again)))
