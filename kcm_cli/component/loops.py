"""The event loop of a process: uvloop's where there is one, else asyncio's; and what a process of many connections
needs."""

import asyncio
import gc
from collections.abc import Coroutine
from importlib import import_module
from typing import TypeVar

from kcm_cli.component import descriptors
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.garbage import tidy

T = TypeVar("T")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop that nothing runs on yet. There is no uvloop for Windows, nor for interpreters other than CPython."""
    try:
        loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return loop


def run_process(main: Coroutine[object, object, T]) -> T:
    """Run the main coroutine of a process, with many descriptors and short garbage collections.

    Its modules live as long as it does: the garbage collector, which stops all threads, does not traverse them again
    (30 ms each time).
    """
    descriptors.allow_many()
    gc.freeze()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_while_tidying(main))


async def _while_tidying(main: Coroutine[object, object, T]) -> T:
    garbage = asyncio.create_task(tidy(LoopClock()))
    try:
        return await main
    finally:
        gc.freeze()  # the process ends: collecting all that it still has, as Python does last, took 2 s for 60,000 pods
        garbage.cancel()
