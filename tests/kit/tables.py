"""What grows: the containers of long-lived objects that have more items after each of several equal rounds."""

import gc
import types
from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

_KINDS = (dict, list, set, deque)
_NOT_HOLDERS = (types.FrameType, types.CoroutineType, types.GeneratorType, tuple)
_DEPTH, _WIDTH = 6, 100


class Growth:
    """Sizes after each round. Tables of limited size are expected to be an OrderedDict or an lru_cache."""

    def __init__(self) -> None:
        self._first: list[Any] = []  # kept, so that no other container gets the id of one of them
        self._sizes: list[list[int]] = []

    def measure(self) -> None:
        """Call it after each round."""
        gc.collect()
        self._first = self._first or [one for one in _containers() if one]
        self._sizes.append([len(one) for one in self._first])

    def found(self, by: int, allowed: tuple[str, ...] = ()) -> list[str]:
        """The names of the containers that grew in each round after the first by so many items or more."""
        found = []
        for one, *sizes in zip(self._first, *self._sizes, strict=True):
            if all(after - before >= by for before, after in pairwise(sizes)):
                name = _name(one, self._first)
                if name and not name.endswith(allowed):
                    found.append(f"{name} {sizes}, the last is {str(list(one)[-1])[:80]}")
        return sorted(found)


def _containers() -> Iterator[Any]:
    """Before Python 3.14 the garbage collector knows no dictionary of texts and numbers: these are found at what holds
    them."""
    known = gc.get_objects()
    yield from (one for one in known if _is_container(one))
    found: set[int] = set()
    for holder in known:
        for one in gc.get_referents(holder):
            if _is_container(one) and not gc.is_tracked(one) and id(one) not in found:
                found.add(id(one))
                yield one


def _is_container(one: object) -> bool:
    return isinstance(one, _KINDS) and not isinstance(one, OrderedDict)


def _name(wanted: object, known: list[Any]) -> str:
    """``module.Class.attribute`` of the nearest object of kcm that holds a container; empty for those of others."""
    seen, level = {id(wanted), id(known)}, [wanted]
    for _ in range(_DEPTH):
        following: list[object] = []
        for one in level:
            for holder in gc.get_referrers(one):
                if id(holder) in seen or holder is level or holder is following or isinstance(holder, _NOT_HOLDERS):
                    continue
                seen.add(id(holder))
                if type(holder).__name__ == "_lru_cache_wrapper":
                    return ""
                if type(holder).__module__.startswith("kcm_cli"):
                    return f"{type(holder).__module__}.{type(holder).__qualname__}.{_attribute(holder, one)}"
                following.append(holder)
        level = following[:_WIDTH]
    return ""


def _attribute(holder: object, held: object) -> str:
    slots = (slot for each in type(holder).__mro__ for slot in getattr(each, "__slots__", ()))
    fields = getattr(holder, "__dict__", {})
    named = [*fields, *slots, *getattr(holder, "__struct_fields__", ())]
    return next((name for name in named if fields is not held and getattr(holder, name, None) is held), "?")
