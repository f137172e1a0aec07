"""Says where a program under test is: for errors about one that does not rest, or does not end."""

import asyncio
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

_OURS = str(Path(__file__).parents[1]) + os.sep
_LIBRARIES = tuple({str(Path(sysconfig.get_path(name))) + os.sep for name in ("stdlib", "purelib", "platlib")})
_SHOWN = 3


def whereabouts(thread: int | None, tasks: Iterable[asyncio.Task[Any]] = ()) -> str:
    """The program's own line that a thread (its ident) runs, as ``main (operator.py:12)``; else the lines at which its
    tasks wait. Libraries and kcm are passed over. Empty if there is no such line. May be called from any thread."""
    running = sys._current_frames().get(thread) if thread is not None else None
    while running is not None and not _is_own(running):
        running = running.f_back
    if running is not None:
        return _shown(running)
    waiting = {_shown(frame) for task in tasks if (frame := _awaits(task)) is not None}
    return ", ".join(sorted(waiting)[:_SHOWN])


def _awaits(task: asyncio.Task[Any]) -> FrameType | None:
    """The innermost frame of a task that is the program's own."""
    found: FrameType | None = None
    coroutine: Any = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and _is_own(frame):
            found = frame
        coroutine = getattr(coroutine, "cr_await", None)
    return found


def _is_own(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return not path.startswith((_OURS, *_LIBRARIES, "<"))


def _shown(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{frame.f_code.co_name} ({shown}:{frame.f_lineno})"
