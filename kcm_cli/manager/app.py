"""The manager as a process: signals, exit codes, and one log line for the error that ended it.

``run`` is the process. ``manage`` does the same without signals and exits, on the caller's loop.
"""

import asyncio
import contextlib
import logging
import os
import random
import signal
from collections.abc import Callable

from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.component.loops import run_process
from kcm_cli.engine.descriptor import StartError
from kcm_cli.manager.config import Config
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.lifecycle import Manager, Place
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.stacks import on_quit
from kcm_cli.rest.errors import AccessError
from kcm_cli.rest.probe import NotHealthy
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.tasks import innermost

log = logging.getLogger(__name__)

_END_S = 1.0
_EXPLAINED = (RunError, StartError, AccessError, NotHealthy, RequestError)


async def manage(
    config: Config,
    stop: asyncio.Event,
    *,
    abandon: Callable[[str], None],
    clock: Clock | None = None,
    watched: Callable[[Observability], None] | None = None,
    place: Place | None = None,
) -> int:
    """Run a manager on this loop until ``stop`` is set; returns the exit code. An error is logged in one line.

    abandon: called with a reason, on another thread, when this process must not write any more. watched: called with
    the manager's metrics and health checks before it runs.
    """
    log.info("Starting", extra={"fields": {"version": config.git_version}})
    try:
        rng = random.Random(os.urandom(16))
        manager = Manager(config, stop, abandon, clock or RealClock(), rng, place or Place())
        if watched is not None:
            watched(manager.observability)
        await manager.run()
    except BaseExceptionGroup as group:
        return _report(innermost(group))
    except Exception as error:  # noqa: BLE001  # the last place to log it before the process ends
        return _report(error)
    return 0


def run(config: Config) -> int:
    """Run a manager as this process; returns the exit code.

    SIGTERM and SIGINT stop it gracefully, a second one at once. SIGQUIT ends it with the stacks of all threads and
    tasks. SIGUSR1 and SIGUSR2 have no effect, as in Go programs.
    """
    return run_process(_process(config))


async def _process(config: Config) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            exit_now("asked to terminate twice")
        log.info("Requested to terminate. Exiting.")
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        loop.add_signal_handler(number, lambda: None)
    on_quit()
    code = await manage(config, stop, abandon=lambda why: exit_now(f"leaderelection lost: {why}"))
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left and (await asyncio.wait(left, timeout=_END_S))[1]:
        exit_now("tasks do not end", code)  # the loop would wait for them
    return code


def exit_now(why: str, code: int = 1) -> None:
    """Exit at once. Only the log is flushed."""
    log.error("Exiting at once", extra={"fields": {"err": why}})
    for handler in logging.getLogger().handlers:
        with contextlib.suppress(OSError, ValueError):
            handler.flush()
    os._exit(code)


def _report(error: BaseException) -> int:
    if isinstance(error, _EXPLAINED):
        log.error("command failed", extra={"fields": {"err": " ".join(str(error).split())}})
    else:
        log.error("command failed", extra={"fields": {"err": str(error)}}, exc_info=error)
    return 1
