"""Runs full garbage collections, and gives memory back, when the process is idle.

Python traverses all objects each time their number has grown by a quarter. With tens of thousands of pods that stops
the loop for seconds, and takes a tenth of the CPU. Nearly all objects are in no cycle and are freed without it. Young
objects are still collected as usual, which takes milliseconds; of those that survive, a later collection frees one in a
thousand.

Objects of the first seconds, modules above all, are never looked at: the few of them that end up in cycles stay.
"""

import gc
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kcm_cli.component.memory import Allocator

if TYPE_CHECKING:  # help and mistakes on the command line need no event loop
    from kcm_cli.component.clock import Clock

PERIOD_S = 5.0
TRIM_S = 300.0
"""How often memory is given back to the system."""
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
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@contextmanager
def loading() -> Iterator[None]:
    """The same for the modules of a process, which live as long as it does: later collections do not look at them.

    Without that, the first collection after it would look at all of them (10 ms).
    """
    with no_collections():
        yield
        gc.freeze()


async def collect_at_rest(clock: "Clock") -> None:
    """Run until cancelled; then Python's thresholds are set as before. For the main coroutine of a process: the objects
    of its first seconds are never looked at."""
    before, allocator = gc.get_threshold(), Allocator()
    allocator.keep_large_blocks_apart()
    gc.set_threshold(*_THRESHOLDS)
    try:
        with loading():
            await clock.sleep(PERIOD_S)
        used_s, due, trimmed = time.process_time(), _LEAST, -math.inf
        while True:
            await clock.sleep(PERIOD_S)
            last_s, used_s = used_s, time.process_time()
            grown, rests = gc.get_count()[1], used_s - last_s < AT_REST * PERIOD_S
            if rests and clock.monotonic() - trimmed >= TRIM_S:
                allocator.give_back()
                trimmed, used_s = clock.monotonic(), time.process_time()
            if grown >= 10 * due or (grown >= due and rests):
                began_s = time.perf_counter()
                gc.collect()
                due = min(max(_LEAST, round(_EACH_S * (time.perf_counter() - began_s))), _MOST)
                used_s = time.process_time()
    finally:
        gc.set_threshold(*before)
