"""Polls conditions in real time."""

import asyncio
import inspect
import reprlib
import time
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from kcm_cli.component.clock import RealClock
from kcm_cli.rest.errors import NotFound

T = TypeVar("T")
Errors = type[Exception] | Collection[type[Exception]]
POLL_S = 0.02
_REAL = RealClock()
IGNORED = (AssertionError, LookupError, NotFound)
"""The errors that count as false by default: also those of keys, items and objects that are not there yet."""


def wait(condition: Callable[[], T], timeout: float, ignoring: Errors) -> T:
    """The first true value of the condition. ``ignoring``: errors that count as false. Raises TimeoutError."""
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
    """``wait`` with an awaitable condition."""
    __tracebackhide__ = True  # in the report of a test that fails
    patience, ignored = _Patience(timeout), _classes(ignoring)
    while True:
        try:
            if answer := await awaitable(condition()):
                return answer
            last: object = answer
        except ignored as error:
            last = error
        patience.after(last)
        await asyncio.sleep(POLL_S)


def _classes(errors: Errors) -> type[Exception] | tuple[type[Exception], ...]:
    """The error classes as a class or tuple, as ``except`` requires."""
    return errors if isinstance(errors, type) else tuple(errors)


def decided(answer: T) -> T:
    """The value of a condition. Raises TypeError for an awaitable one, which would count as true."""
    __tracebackhide__ = True
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("a function that is not asynchronous is needed here; conditions that are: wait_async")
    return answer


def awaitable(answer: Awaitable[T]) -> Awaitable[T]:
    """What is awaited for a condition. Raises TypeError for what cannot be."""
    __tracebackhide__ = True
    if not inspect.isawaitable(answer):
        raise TypeError("an asynchronous function is needed here; conditions that are not: wait of a Sandbox")
    return answer


class Steps:
    """Steps of the cluster's time until a condition holds. ``passed``: the seconds so far."""

    def __init__(self, limit: float, step: float) -> None:
        """Raises ValueError for an invalid step."""
        if not step > 0:
            raise ValueError(f"a step is a number of seconds above 0, not {step}")
        self._limit = limit
        self._step = step
        self.passed = -step

    def holds(self, condition: Callable[[], object], ignoring: Errors) -> bool:
        """Whether a condition holds after one more step. Raises TimeoutError."""
        __tracebackhide__ = True
        try:
            last = decided(condition())
        except _classes(ignoring) as error:
            last = error
        return self._after(last)

    async def holds_async(self, condition: Callable[[], Awaitable[object]], ignoring: Errors) -> bool:
        """``holds`` with an awaitable condition."""
        __tracebackhide__ = True
        try:
            last = await awaitable(condition())
        except _classes(ignoring) as error:
            last = error
        return self._after(last)

    def _after(self, last: object) -> bool:
        __tracebackhide__ = True
        self.passed += self._step
        error = last if isinstance(last, Exception) else None
        if error is None and last:
            return True
        if self.passed >= self._limit:
            raise TimeoutError(f"not true after {self._limit:g} s of the cluster's time: {last!r}") from error
        return False


class _Patience:
    """The timeout of a wait, with the last value for its error."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._deadline = _REAL.monotonic() + timeout_s

    def after(self, last: object) -> None:
        """Raises TimeoutError after the timeout."""
        __tracebackhide__ = True
        if _REAL.monotonic() > self._deadline:
            message = f"not true after {self._timeout_s:g} s; the last answer was {reprlib.repr(last)}"
            raise TimeoutError(message) from (last if isinstance(last, Exception) else None)
