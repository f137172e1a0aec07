"""Runs full garbage collections when the process is idle.

Python traverses all objects each time their number has grown by a quarter. With tens of thousands of pods that stops
the loop for seconds, and takes a tenth of the CPU. Nearly all objects are in no cycle and are freed without it. Young
objects are still collected as usual, which takes milliseconds; of those that survive, a later collection frees one in a
thousand.

Objects of the first seconds, modules above all, are not looked at: the few of them that end up in cycles stay.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # help and mistakes on the command line need no event loop
    from kcm_cli.component.clock import Clock

PERIOD_S = 5.0
AT_REST = 0.25
"""The share of a core that the process takes at most when it is at rest."""
_THRESHOLDS = (5_000, 1_000_000, 1_000_000)
"""The last two: never by themselves."""
_LEAST, _MOST, _EACH_S = 20, 200, 1000
"""How many times 5,000 more objects are worth a look at rest: a thousand times for each second that the last look took,
but from 100,000 to a million objects. Ten times as many are worth it at any time."""


@contextmanager
def no_collections() -> Iterator[None]:
    """For the loading of modules: there is no garbage, and looking for it takes a tenth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def collect_at_rest(clock: "Clock") -> None:
    """Run until cancelled; then Python's thresholds are set as before. For the main coroutine of a process: the objects
    of its first seconds are never looked at."""
    before = gc.get_threshold()
    gc.set_threshold(*_THRESHOLDS)
    try:
        await clock.sleep(PERIOD_S)
        gc.freeze()
        used_s, due = time.process_time(), _LEAST
        while True:
            await clock.sleep(PERIOD_S)
            last_s, used_s = used_s, time.process_time()
            grown = gc.get_count()[1]
            if grown >= 10 * due or (grown >= due and used_s - last_s < AT_REST * PERIOD_S):
                began_s = time.perf_counter()
                gc.collect()
                due = min(max(_LEAST, round(_EACH_S * (time.perf_counter() - began_s))), _MOST)
                used_s = time.process_time()
    finally:
        gc.set_threshold(*before)
