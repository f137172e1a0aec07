"""The stacks of threads and asyncio tasks, as Python can tell them."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from types import FrameType

from kcm_cli.manager.server.profile_proto import Frame, Stack

_DEEPEST = 100
_FRAMES, _AWAITED = ("cr_frame", "gi_frame", "ag_frame"), ("cr_await", "gi_yieldfrom", "ag_await")
"""Of coroutines, generators and asynchronous generators."""


def thread_stacks(but: int = 0) -> Iterator[Stack]:
    """The stack of each thread, innermost frame first, with the thread's name at the end."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if ident != but:
            root = Frame(f"thread {names.get(ident, ident)}", "thread", 0)
            yield (*_frames(frame), root)


def _frames(frame: FrameType | None) -> Iterator[Frame]:
    while frame is not None:
        code = frame.f_code
        yield Frame(f"{frame.f_globals.get('__name__', '?')}.{code.co_qualname}", code.co_filename, frame.f_lineno or 0)
        frame = frame.f_back


def task_stack(task: asyncio.Task[object]) -> Stack:
    """The stack of a waiting task, innermost frame first, with the task's name at the end."""
    frames: list[Frame] = []
    awaited: object = task.get_coro()
    while awaited is not None and len(frames) < _DEEPEST:
        frame = next((found for name in _FRAMES if (found := getattr(awaited, name, None)) is not None), None)
        frames.extend(_frames(frame) if frame is not None and frame.f_back is None else ())
        awaited = next((found for name in _AWAITED if (found := getattr(awaited, name, None)) is not None), None)
    return (*reversed(frames), Frame(f"task {task.get_name()}", "task", 0))
