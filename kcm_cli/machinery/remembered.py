"""Caches results of pure functions of texts. Texts from outside may be a megabyte long: they are not cached, or their
total is limited."""

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, TypeVarTuple, cast

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
LONGEST = 512
"""Characters: names, quantities, times, images and most expressions are shorter."""
_ENTRY = 256
"""Bytes that an entry counts for besides its document."""


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


def remembered_documents(size: int) -> Callable[[Callable[[bytes], T]], Callable[[bytes], T]]:
    """The same for functions of encoded documents: those used last, ``size`` bytes of documents together. An error is
    not cached. Used from one thread, or where computing a result twice does no harm."""

    def decorate(function: Callable[[bytes], T]) -> Callable[[bytes], T]:
        known: OrderedDict[bytes, T] = OrderedDict()
        left = size

        def answer(document: bytes) -> T:
            nonlocal left
            try:
                result = known[document]
                known.move_to_end(document)
            except KeyError:
                result = known[document] = function(document)
                left -= len(document) + _ENTRY
                while left < 0 and len(known) > 1:
                    left += len(known.popitem(last=False)[0]) + _ENTRY
            return result

        return answer

    return decorate
