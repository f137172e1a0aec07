"""Bounded memories, which forget what was used longest ago."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
SIZE = 500


class Bounded(OrderedDict[K, V]):
    """A dictionary that drops the entries that were set longest ago. Set one again to keep it for longer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._size:
            self.popitem(last=False)


class Recent:
    """A set for values that never become invalid, such as the uids of deleted objects. It drops the least recently used
    ones.

    upstream: pkg/controller/garbagecollector/uid_cache.go
    """

    def __init__(self, size: int = SIZE) -> None:
        self._known: Bounded[Hashable, None] = Bounded(size)

    def add(self, item: Hashable) -> None:
        self._known[item] = None

    def __contains__(self, item: Hashable) -> bool:
        if item not in self._known:
            return False
        self._known.move_to_end(item)
        return True
