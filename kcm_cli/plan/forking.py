"""Forks the run of a twin: a copy of this process goes on without the change. So the common part runs once, and two
processors share the rest."""

import asyncio
import gc
import os
import pickle
import signal
import threading
from collections.abc import Coroutine
from typing import Generic, NoReturn, TypeVar

from kcm_cli.plan.snapshot import PlanError

T = TypeVar("T")
LOOK_S = 1.0
"""How often a copy looks whether its parent is still there, in seconds of the machine's."""


def may_fork() -> bool:
    """Whether this process can be forked: other threads would be missing in the copy."""
    return hasattr(os, "fork") and threading.active_count() == 1


class Copy(Generic[T]):
    """A copy of this process that runs one coroutine to its end. Call ``start``, ``result`` once, and ``end``."""

    def __init__(self, work: Coroutine[object, object, T]) -> None:
        """Create it within a running loop on virtual time. The loop's tasks go on in both processes."""
        self._work = work
        self._pid = 0
        self._pipe = -1

    async def start(self) -> None:
        """Fork. Returns in this process only."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        reading, writing = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid:
            os.close(writing)
            self._work.close()
            self._pid, self._pipe = pid, reading
            return
        os.close(reading)
        gc.freeze()  # so that collecting does not write to pages that both share
        asyncio._set_running_loop(loop)  # it is bound to the process that it began in
        if task is not None and asyncio.current_task() is None:  # so is the task, from Python 3.14 on
            asyncio.tasks._enter_task(loop, task)
        await self._in_copy(writing, parent)

    async def _in_copy(self, writing: int, parent: int) -> NoReturn:
        def look(*_: object) -> None:
            if os.getppid() != parent:  # nobody waits for the result any more
                os._exit(1)

        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, look)
        signal.setitimer(signal.ITIMER_REAL, LOOK_S, LOOK_S)
        try:
            answer: object = (True, await self._work)
        except PlanError as error:
            answer = (False, str(error))
        except BaseException as error:  # noqa: BLE001 - the end of this process: its parent raises it
            answer = (False, f"the run without the change failed: {error!r}")
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe, pickle.HIGHEST_PROTOCOL)
        os._exit(0)

    def result(self) -> T:
        """Wait for the copy and return its result. Raises PlanError if it failed."""
        with os.fdopen(self._pipe, "rb") as pipe:
            data = pipe.read()
        self._pipe = -1
        os.waitpid(self._pid, 0)
        if not data:
            raise PlanError("the run without the change was ended by another process")
        done, value = pickle.loads(data)
        if not done:
            raise PlanError(value)
        found: T = value
        return found

    def end(self) -> None:
        """Kill the copy if its result was not read. Call it last."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
