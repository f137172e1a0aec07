"""Owners that are known not to exist, so that the server is not asked for each of their dependents.

upstream: pkg/controller/garbagecollector/uid_cache.go
"""

from collections import OrderedDict
from collections.abc import Hashable

SIZE = 500


class AbsentOwners:
    """The last absent owners; a uid never comes back, so what is here stays true."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._known: OrderedDict[Hashable, None] = OrderedDict()

    def add(self, owner: Hashable) -> None:
        self._known[owner] = None
        self._known.move_to_end(owner)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def __contains__(self, owner: Hashable) -> bool:
        if owner not in self._known:
            return False
        self._known.move_to_end(owner)
        return True
