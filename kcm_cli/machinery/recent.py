"""What was met lately and never comes back, as the uids of objects that are gone.

upstream: pkg/controller/garbagecollector/uid_cache.go
"""

from collections import OrderedDict
from collections.abc import Hashable

SIZE = 500


class Recent:
    """A set that forgets what was added or asked for the longest time ago."""

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
