"""The resource version that a cache has reached, and the callbacks that wait for one.

Resource versions of one resource grow with every write, so that a cache at version N shows every write up to N. A
version that is not a number cannot be compared and is not waited for. Without waiters an event costs two assignments.

upstream: staging/src/k8s.io/client-go/tools/cache#Store.LastStoreSyncResourceVersion
"""

import heapq
from collections.abc import Callable
from itertools import count

from kcm_cli.machinery.meta import number_of

Callback = Callable[[], None]


class Progress:
    """The version up to which a cache is complete; callbacks for versions, and for deletions of objects."""

    def __init__(self) -> None:
        self._version = ""
        self._versions: list[tuple[int, int, Callback]] = []
        self._order = count()
        self._ends: dict[str, list[Callback]] = {}
        self._removals: dict[str, list[Callback]] = {}

    def behind(self, version: int) -> bool:
        """Whether the cache certainly does not show a write of this version yet."""
        return 0 < number_of(self._version) < version

    def at(self, version: int, callback: Callback) -> None:
        """Call back once, when the cache shows this version, or when versions are not numbers any more."""
        heapq.heappush(self._versions, (version, next(self._order), callback))

    def at_end_of(self, uid: str, callback: Callback) -> None:
        """Call back once, as soon as the cache shows the object's deletion timestamp, or does not have the object."""
        self._ends.setdefault(uid, []).append(callback)

    def at_removal_of(self, uid: str, callback: Callback) -> None:
        """Call back once, as soon as the cache does not have the object."""
        self._removals.setdefault(uid, []).append(callback)

    # -- what the cache reports

    def reached(self, version: str) -> None:
        """The cache is complete up to this version, which is that of an event, a bookmark or a list."""
        self._version = version
        if not self._versions:
            return
        number = number_of(version)
        while self._versions and (not number or self._versions[0][0] <= number):
            heapq.heappop(self._versions)[2]()

    def replacing(self, version: str) -> None:
        """The cache is being replaced by a list of this version, which may be older (from another API server)."""
        if self.behind(number_of(version)):
            return
        self._version = version

    def ended(self, uid: str) -> None:
        """The cache shows that this object is being deleted."""
        for callback in self._ends.pop(uid, ()) if self._ends else ():
            callback()

    def removed(self, uid: str) -> None:
        """The cache does not have this object any more."""
        self.ended(uid)
        for callback in self._removals.pop(uid, ()) if self._removals else ():
            callback()
