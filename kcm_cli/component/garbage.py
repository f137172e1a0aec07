"""Keeps Python's garbage collections short, and gives memory back when the process is idle.

Python traverses all objects each time their number has grown by a quarter. With tens of thousands of pods that stops
the loop for seconds, and takes a tenth of the CPU. Nearly all objects are in no cycle and are freed without it. So here
an object is looked at twice while it is young, about 1 µs each time, and then no more.

Python begins a look when there are some thousand new objects more than were freed, old ones included. Where new objects
take the place of old ones, as versions in a cache do, that is never: a hundred thousand pods that changed were millions
of young objects, and the next look took 3.5 s. So there is also a look after a short time, unless the process has done
little: then few objects are new, and a cycle that lives for seconds is found when its life is over.

Missed are cycles that were in use then and are garbage now. If there are many, the number of objects grows: if it has
grown by half, a collection looks at all of them, once an hour at rest, or once in four hours.
"""

import gc
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kcm_cli.component.memory import Allocator

if TYPE_CHECKING:  # see tidy
    from kcm_cli.component.clock import Clock

START_S = 5.0
"""How long modules are loaded and caches filled, without collections."""
PERIOD_S = 5.0
TRIM_S = 300.0
"""How often memory is given back to the system."""
WHOLE_S, BUSY_S = 3600.0, 4 * 3600.0
"""The least time between two looks at all objects, at rest and at any time."""
GROWN = 1.5
"""The growth that is worth one."""
AT_REST = 0.25
"""The share of a core that the process takes at most when it is at rest. Young objects wait until it has taken as much
of the time between two looks."""
YOUNG_S, SHORTEST_S = 0.1, 0.0125
"""The time between two looks at young objects: it becomes shorter, down to the second, while these take long."""
LONG_S = 0.004
"""A look that takes longer makes the time until the next one half as long, one that takes a quarter of it twice."""
SECOND = 8
"""One of so many looks is also the second look at what has survived the first."""
SURVIVED_S = 0.008
"""It comes earlier after first looks that took so long together: it has to look at what they have left, in one turn."""
THRESHOLDS = (1_500, 2, 2_000_000_000)
"""New objects until they are looked at once, twice as many until the second look, and never a look at all. Those that
are freed meanwhile do not count, old ones included, so that a look may see several times as many."""


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


async def tidy(clock: "Clock") -> None:
    """Run until cancelled; then Python's thresholds are set as before. For the main coroutine of a process."""
    import asyncio  # here: help and mistakes on the command line need no event loop

    before, allocator, young = gc.get_threshold(), Allocator(), None
    allocator.keep_large_blocks_apart()
    gc.set_threshold(*THRESHOLDS)
    oldest = 1
    if not gc.get_threshold()[2]:  # Python 3.14.0 to 3.14.4 look at a part of all objects each time, at a half here
        gc.set_threshold(THRESHOLDS[0], THRESHOLDS[2])
        oldest = 0  # a second look would be one at such a part, and at times at all
    try:
        with loading():
            await clock.sleep(START_S)
        young = asyncio.create_task(_look_at_young(clock, oldest))
        known, looked_at, trimmed_at = 0, clock.monotonic(), -math.inf
        while True:
            used_s = time.process_time()
            await clock.sleep(PERIOD_S)
            now, rests = clock.monotonic(), time.process_time() - used_s < AT_REST * PERIOD_S
            if rests and now - trimmed_at >= TRIM_S:
                allocator.give_back()
                trimmed_at = now
            if now - looked_at >= (WHOLE_S if rests else BUSY_S):
                looked_at = now
                known = _looked_at_all(known)
    finally:
        if young is not None:
            young.cancel()
        gc.set_threshold(*before)


async def _look_at_young(clock: "Clock", oldest: int) -> None:
    """oldest: the generation of the second look."""
    wait_s, looked_at_s = YOUNG_S, time.process_time()
    firsts, firsts_s = 0, 0.0
    while True:
        await clock.sleep(wait_s)
        used_s = time.process_time()
        if used_s - looked_at_s < AT_REST * wait_s:
            wait_s = min(YOUNG_S, wait_s * 2)  # at rest: each wake-up is work, too
            continue
        looked_at_s = used_s
        second = firsts == SECOND - 1 or firsts_s >= SURVIVED_S
        started = time.thread_time()
        gc.collect(oldest if second else 0)
        took_s = time.thread_time() - started
        firsts, firsts_s = (0, 0.0) if second else (firsts + 1, firsts_s + took_s)
        wait_s = pause_s(wait_s, took_s)


def pause_s(before_s: float, took_s: float) -> float:
    """The seconds until the next look at young objects, after one that took so much CPU time."""
    if took_s > LONG_S:
        return max(SHORTEST_S, before_s / 2)
    return min(YOUNG_S, before_s * 2) if took_s < LONG_S / 4 else before_s


def _looked_at_all(known: int) -> int:
    """Look at all objects if Python has allocated many more blocks than were known; only count these if that was 0.
    Returns how many are known from now on. To count the objects would be a walk over all of them: 100 ms for those of
    100,000 pods, where this takes one."""
    count = sys.getallocatedblocks()
    if known and count <= GROWN * known:
        return known
    if known:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        count = sys.getallocatedblocks()
    return count
