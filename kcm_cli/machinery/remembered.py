"""Results of functions of short texts, kept: what comes from outside may be a megabyte long, and is never kept then."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, TypeVarTuple, cast

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
LONGEST = 512
"""Characters: names, quantities, times, images and most expressions are shorter."""


def remembered(size: int, longest: int = LONGEST) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A decorator: the results for the ``size`` short texts that were asked for last are kept."""

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        known = lru_cache(size)(function)

        def answer(text: str) -> T:
            return known(text) if len(text) <= longest else function(text)

        return answer

    return decorate


def remembered_all(size: int, longest: int = LONGEST) -> Callable[[Callable[[*Ts], T]], Callable[[*Ts], T]]:
    """The same for functions of several arguments: texts, tuples of texts and what has no size."""

    def decorate(function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
        known = cast("Callable[[*Ts], T]", lru_cache(size)(function))

        def answer(*args: *Ts) -> T:
            left = longest
            for arg in args:
                if isinstance(arg, str):
                    left -= len(arg)
                elif isinstance(arg, tuple):
                    left -= sum(map(len, arg)) + len(arg)
            return known(*args) if left >= 0 else function(*args)

        return answer

    return decorate
