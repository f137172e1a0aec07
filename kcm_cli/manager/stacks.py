"""Handles SIGQUIT as Go programs do: writes the stacks of all threads and tasks to standard error, and exits with 2.

faulthandler writes the threads' stacks, so that they appear even if the interpreter hangs.
"""

import asyncio
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

from kcm_cli.manager.server.stack_frames import task_stack


def on_quit() -> None:
    """Install the handler. Call it in the main thread; standard error must be a file."""
    signal.signal(signal.SIGQUIT, _dump)
    faulthandler.register(signal.SIGQUIT, all_threads=True, chain=True)


def tasks() -> Iterator[str]:
    """The stacks of all asyncio tasks of all loops, innermost frame first, as Go writes those of goroutines."""
    gc.unfreeze()  # ``component.garbage`` freezes what lives long, and the list below lacks what is frozen
    # By its type: isinstance asks objects for their class, which those that stand for others may refuse.
    for task in (one for one in gc.get_objects() if issubclass(type(one), asyncio.Task) and not one.done()):
        *frames, _ = task_stack(task)
        yield f"task {task.get_name()}:\n" + "".join(f"{one.function}\n\t{one.file}:{one.line}\n" for one in frames)


def _dump(number: int, frame: FrameType | None) -> None:
    try:
        sys.stderr.write("SIGQUIT: quit\n\n" + "\n".join(tasks()))
        sys.stderr.flush()
    finally:
        os._exit(2)
