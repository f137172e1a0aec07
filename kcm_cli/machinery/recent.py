"""A bounded set for values that never become invalid, such as the uids of deleted objects.

upstream: pkg/controller/garbagecollector/uid_cache.go
"""

from collections import OrderedDict
from collections.abc import Hashable

SIZE = 500


class Recent:
    """A set that drops the least recently used values."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def add(self, item: Hashable) -> None:
        self._known[item] = None
        self._known.move_to_end(item)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def __contains__(self, item: Hashable) -> bool:
        if item not in self._known:
            return False
        self._known.move_to_end(item)
        return True
