"""kcm whose event loops say which of their turns were long: ``python -m tests.bench.timed FILE [--names] FLAG...``.

A line of FILE for each turn of more than LEAST_MS of CPU: the time (that of ``time.monotonic``), the thread, and the
milliseconds; with --names also the longest callback of the turn, or the task that it was. Without names a timer looks
every PROBE_S how much CPU the thread took since, so that a turn may seem so much longer; with names, the loop is
asyncio's, and all takes more.
"""

import asyncio
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kcm_cli.component import loops
from tests.bench.turns import Steps

PROBE_S = 0.002
LEAST_MS = 15.0


class Log:
    """The file, which two threads write to."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def turn(self, took_s: float, what: str = "") -> None:
        if took_s * 1e3 >= LEAST_MS:
            name = threading.current_thread().name.replace(" ", "-")
            with self._path.open("a") as file:
                file.write(f"{time.monotonic():.3f} {name} {took_s * 1e3:.1f} {what}\n")


def probed(loop: asyncio.AbstractEventLoop, log: Log) -> asyncio.AbstractEventLoop:
    """A loop that asks every PROBE_S."""
    last: list[float] = []

    def look() -> None:
        now = time.thread_time()
        if last:
            log.turn(now - last.pop())
        last.append(now)
        loop.call_later(PROBE_S, look)

    loop.call_soon(look)
    return loop


def named(log: Log) -> asyncio.AbstractEventLoop:
    """A loop of asyncio that knows the longest callback of each turn."""
    loop: Any = asyncio.new_event_loop()
    steps = Steps()
    steps.install(loop)
    once = loop._run_once

    def turned() -> None:
        steps.clear()
        once()
        log.turn(steps.turn_s, f"{steps.step_s * 1e3:.1f} {steps.longest}")

    loop._run_once = turned
    return loop  # type: ignore[no-any-return]


def main() -> None:
    path, *words = sys.argv[1:]
    log, ordinary = Log(path), loops.new_event_loop
    names = words[:1] == ["--names"]

    def new_event_loop() -> asyncio.AbstractEventLoop:
        if names and threading.current_thread() is threading.main_thread():
            return named(log)
        return probed(ordinary(), log)

    loops.new_event_loop = new_event_loop  # before it is imported by others
    from kcm_cli.cli.main import main as run

    sys.argv[1:] = words[1:] if names else words
    sys.exit(run())


if __name__ == "__main__":
    main()
