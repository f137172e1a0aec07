"""How the cost of a call grows with the size of its input, whatever the speed of the machine."""

import time
from collections.abc import Callable


def _cost(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def grows_less(prepare: Callable[[int], Callable[[], object]], size: int, times: float) -> bool:
    """Whether the call for eight times the size costs less than so many times the CPU time.

    ``prepare(size)`` returns the call. The cheapest of several calls counts: a busy machine only adds to it.
    """
    small, large = prepare(size), prepare(8 * size)
    least_small = least_large = float("inf")
    for _ in range(5):
        least_small, least_large = min(least_small, _cost(small)), min(least_large, _cost(large))
        if least_large < times * max(least_small, 1e-3):
            return True
    return False


def grows_linearly(prepare: Callable[[int], Callable[[], object]], size: int) -> bool:
    """Whether eight times the size costs less than 24 times as much (a quadratic call costs 64 times as much)."""
    return grows_less(prepare, size, 24)
