"""Keeps Python's garbage collections short, and gives memory back when the process is idle.

Python collects the oldest generation, all objects, each time their number has grown by a quarter. With tens of
thousands of pods that stops the loop for seconds, and takes a tenth of the CPU. Nearly all objects are in no cycle and
are freed without it. So here only the young generations, 0 and 1, are collected: an object is traversed twice, about
1 µs each time, and then no more.

Python begins a collection when there are some thousand new objects more than were freed, old ones included. Where new
objects take the place of old ones, as versions in a cache do, that is never: a hundred thousand pods that changed were
millions of young objects, and the next collection took 3.5 s. So there is also one after a short time, unless the
process has done little: then few objects are new, and a cycle that lives for seconds is found when its life is over.

Missed are cycles that were in use then and are garbage now. If there are many, the process grows: if it has grown by
half, all objects are collected, once an hour at rest, or once in four hours.
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
"""The least time between two collections of all objects, at rest and at any time."""
GROWN = 1.5
"""The growth that is worth one."""
AT_REST = 0.25
"""The share of a core that the process takes at most when it is at rest. Young objects wait until it has taken as much
of the time between two collections."""
YOUNG_S, SHORTEST_S = 0.1, 0.0125
"""The time between two collections of young objects: it becomes shorter, down to the second, while these take long."""
LONG_S = 0.004
"""After one that takes longer, the time until the next one is half as long; after one that takes a quarter, twice."""
SECOND = 8
"""One of so many collections is of generation 1: of what has survived those of generation 0, too."""
SURVIVED_S = 0.008
"""It comes earlier after others that took so long together: it traverses what they have left, in one turn."""
THRESHOLDS = (1_500, 2, 2_000_000_000)
"""New objects until generation 0 is collected, twice as many until generation 1 is, and never the oldest. Those that
are freed meanwhile do not count, old ones included, so that a collection may traverse several times as many."""


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
    """The same for the modules of a process, which live as long as it does: later collections do not traverse them.

    Without that, the first collection after it would traverse all of them (10 ms).
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
    if not gc.get_threshold()[2]:  # Python 3.14.0 to 3.14.4 collect a part of all objects each time, a half here
        gc.set_threshold(THRESHOLDS[0], THRESHOLDS[2])
        oldest = 0  # generation 1 would be such a part, and at times all
    try:
        with loading():
            await clock.sleep(START_S)
        young = asyncio.create_task(_collect_young(clock, oldest))
        known, collected_at, trimmed_at = 0, clock.monotonic(), -math.inf
        while True:
            used_s = time.process_time()
            await clock.sleep(PERIOD_S)
            now, rests = clock.monotonic(), time.process_time() - used_s < AT_REST * PERIOD_S
            if rests and now - trimmed_at >= TRIM_S:
                allocator.give_back()
                trimmed_at = now
            if now - collected_at >= (WHOLE_S if rests else BUSY_S):
                collected_at = now
                known = _collected_all(known)
    finally:
        if young is not None:
            young.cancel()
        gc.set_threshold(*before)


async def _collect_young(clock: "Clock", oldest: int) -> None:
    """oldest: the oldest generation to collect."""
    wait_s, collected_at_s = YOUNG_S, time.process_time()
    youngest, youngest_s = 0, 0.0
    while True:
        await clock.sleep(wait_s)
        used_s = time.process_time()
        if used_s - collected_at_s < AT_REST * wait_s:
            wait_s = min(YOUNG_S, wait_s * 2)  # at rest: each wake-up is work, too
            continue
        collected_at_s = used_s
        is_older = youngest == SECOND - 1 or youngest_s >= SURVIVED_S
        started = time.thread_time()
        gc.collect(oldest if is_older else 0)
        took_s = time.thread_time() - started
        youngest, youngest_s = (0, 0.0) if is_older else (youngest + 1, youngest_s + took_s)
        wait_s = pause_s(wait_s, took_s)


def pause_s(before_s: float, took_s: float) -> float:
    """The seconds until the next collection of young objects, after one that took so much CPU time."""
    if took_s > LONG_S:
        return max(SHORTEST_S, before_s / 2)
    return min(YOUNG_S, before_s * 2) if took_s < LONG_S / 4 else before_s


def _collected_all(known: int) -> int:
    """Collect all objects if Python has allocated many more blocks than were known; only count these if that was 0.
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
