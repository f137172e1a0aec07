"""Caches results of functions of short texts. Texts from outside may be a megabyte long, and are not cached."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, TypeVarTuple, cast

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
LONGEST = 512
"""Characters: names, quantities, times, images and most expressions are shorter."""


def remembered(size: int, longest: int = LONGEST) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """A decorator that caches the results of the ``size`` most recently used short texts."""

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        known = lru_cache(size)(function)

        def answer(text: str) -> T:
            return known(text) if len(text) <= longest else function(text)

        return answer

    return decorate


def remembered_all(size: int, longest: int = LONGEST) -> Callable[[Callable[[*Ts], T]], Callable[[*Ts], T]]:
    """The same for functions with several arguments: texts, tuples of texts, and values without a size."""

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
