"""Asking again and again, in real time, until an answer is true."""

import asyncio
import inspect
import reprlib
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

T = TypeVar("T")
Errors = type[Exception] | Collection[type[Exception]]
POLL_S = 0.02


def wait(condition: Callable[[], T], timeout: float, ignoring: Errors) -> T:
    """The first answer that is true. ``ignoring``: errors that stand for not yet. Raises TimeoutError."""
    __tracebackhide__ = True  # in the report of a test that fails
    patience, ignored = _Patience(timeout), _classes(ignoring)
    while True:
        try:
            if answer := decided(condition()):
                return answer
            last: object = answer
        except ignored as error:
            last = error
        patience.after(last)
        time.sleep(POLL_S)


async def wait_async(condition: Callable[[], Awaitable[T]], timeout: float, ignoring: Errors) -> T:
    """The same with a condition that is awaited."""
    __tracebackhide__ = True  # in the report of a test that fails
    patience, ignored = _Patience(timeout), _classes(ignoring)
    while True:
        try:
            if answer := await condition():
                return answer
            last: object = answer
        except ignored as error:
            last = error
        patience.after(last)
        await asyncio.sleep(POLL_S)


def _classes(errors: Errors) -> type[Exception] | tuple[type[Exception], ...]:
    """In the form that ``except`` takes: a list is none."""
    return errors if isinstance(errors, type) else tuple(errors)


def decided(answer: T) -> T:
    """The same answer. Raises TypeError for one that has to be awaited: nobody would, and it counts as true."""
    __tracebackhide__ = True
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("a function that is not asynchronous is needed here; conditions that are: wait_async")
    return answer


class _Patience:
    """Ends a wait that takes too long, and says what came last."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._deadline = time.monotonic() + timeout_s

    def after(self, last: object) -> None:
        """Raises TimeoutError once the time is over."""
        __tracebackhide__ = True
        if time.monotonic() > self._deadline:
            message = f"not true after {self._timeout_s:g} s; the last answer was {reprlib.repr(last)}"
            raise TimeoutError(message) from (last if isinstance(last, Exception) else None)
