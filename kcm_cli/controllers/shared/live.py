"""Objects read from the API server before something is destroyed because of them, as the cache may be behind.

Those that ask for the same objects at the same time share an answer: all pods of a node, all claims of a namespace.
"""

import math
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import msgspec

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.engine.door import Door
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.machinery.meta import Object, number_of
from kcm_cli.machinery.recent import Bounded
from kcm_cli.rest.listing import list_all
from kcm_cli.runtime.store import Store
from kcm_cli.runtime.turns import in_turns

T = TypeVar("T", bound=Object)

SHARED_S = 1.0
"""How long an answer counts, unless the cache shows a later version by then."""
MOST_READ = 100
"""How many answers are kept; of lists, those of so many namespaces."""


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


class _Users(msgspec.Struct, Generic[T], frozen=True):
    """Objects by what they use, as of the version of a list."""

    version: int
    objects: dict[str, list[T]]

    def of(self, key: str, uses: Callable[[T], bool]) -> T | None:
        return next((user for user in self.objects.get(key, ()) if uses(user)), None)


class LiveUsers(Generic[T]):
    """The objects of a kind that use those which are being deleted. ``keys_of``: what an object uses.

    A list serves all objects that were changed before it, until ``clear``.
    """

    def __init__(self, client: Door, resource: Resource[T], keys_of: Callable[[T], Iterable[str]]) -> None:
        self._client, self._resource, self._keys_of = client, resource, keys_of
        self._listed: Bounded[str, _Users[T]] = Bounded(MOST_READ)
        """By namespace."""

    async def find(
        self, key: str, used: Object, namespace: str = "", uses: Callable[[T], bool] = lambda user: True
    ) -> T | None:
        """One of the users (in a namespace) of the object that has this key, or None. Raises RequestError."""
        known = self._listed.get(namespace)
        if known is not None and 0 < used.version <= known.version and known.of(key, uses) is None:
            return None
        return (await self._list(namespace)).of(key, uses)

    def clear(self) -> None:
        """Forget what was listed."""
        self._listed.clear()

    async def _list(self, namespace: str) -> _Users[T]:
        live = await list_all(self._client, self._resource, namespace)
        objects: dict[str, list[T]] = {}
        async for user in in_turns(live.items, OBJECTS):
            for key in self._keys_of(user):
                objects.setdefault(key, []).append(user)
        found = self._listed[namespace] = _Users(number_of(live.resource_version), objects)
        return found
