"""Conversions that a request needs in its middle: it is interrupted, the object is converted, and it begins again."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import TypeVar

from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.types import ApiError

T = TypeVar("T")

MADE: ContextVar[dict[tuple[str, str, str], Doc | ApiError] | None] = ContextVar("made", default=None)
"""The conversions of the current request, by digest and version."""


class Unconverted(Exception):
    """A conversion webhook has to convert an object first. ``convert``: calls it; a failure is raised later, where the
    object is needed.
    """

    def __init__(self, convert: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self.convert = convert


@contextlib.contextmanager
def one_request() -> Iterator[None]:
    """What is converted inside is converted once, and forgotten at the end."""
    token = MADE.set({})
    try:
        yield
    finally:
        MADE.reset(token)


async def converted(make: Callable[[], T]) -> T:
    """What ``make`` returns, called again after each conversion that it needs; inside ``one_request``. Raises what it
    raises, and ApiError 500.
    """
    while True:
        try:
            return make()
        except Unconverted as needed:
            await needed.convert()
