"""The event loop of a process: uvloop's where there is one, else asyncio's."""

import asyncio
from importlib import import_module


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop that nothing runs on yet. There is no uvloop for Windows, nor for interpreters other than CPython."""
    try:
        loop: asyncio.AbstractEventLoop = import_module("uvloop").new_event_loop()
    except ModuleNotFoundError:
        return asyncio.new_event_loop()
    return loop
