"""Objects read from the API server before something is destroyed because of them, as the cache may be behind.

Those that ask for the same object at the same time, as all pods of a node do, share an answer.
"""

import math
from typing import Generic, TypeVar

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.engine.door import Door
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.recent import Bounded
from kcm_cli.runtime.store import Store

T = TypeVar("T", bound=Object)

SHARED_S = 1.0
"""How long an answer counts, unless the cache shows a later version by then."""
MOST_READ = 100
"""How many answers are kept."""


class Live(Generic[T]):
    """The objects of a cluster-wide kind. ``store``: those that the cache has."""

    def __init__(self, client: Door, clock: Clock, resource: Resource[T], store: Store[T]) -> None:
        self._client, self._clock = client, clock
        self._resource, self._store = resource, store
        self._read: Bounded[str, tuple[float, T | None]] = Bounded(MOST_READ)
        """The answers, and when they came."""

    async def find(self, name: str) -> T | None:
        """The object of this name as it is, or was less than SHARED_S ago."""
        known, (read_at, found) = self._store.get(name), self._read.get(name, (-math.inf, None))
        behind = known is not None and (found is None or found.version < known.version)
        if behind or self._clock.monotonic() - read_at > SHARED_S:
            found = await self._client.find(self._resource, "", name)
            self._read[name] = self._clock.monotonic(), found
        return found
