"""Maps kinds to resources and back, by discovery that is fetched when it is first needed. upstream: RESTMapper.

A discovery is used for REFRESH_S; what it lacks is missing for as long, so that a lookup of a kind that nobody serves
costs no request. The condition: within that time only definitions of custom resources bring new kinds. So a lookup that
finds nothing fetches discovery again if a definition has changed lately (``changed_s``): at once, and then after pauses
that double, until SETTLE_S after the change. A kind of an aggregated API server that was just registered is found after
REFRESH_S, as by upstream. One fetch at a time.

upstream: staging/src/k8s.io/client-go/restmapper/discovery.go
"""

import asyncio
from collections.abc import Callable

from kcm_cli.component.clock import Clock
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.served_resources import Discovery, ServedResource

REFRESH_S = 30.0
PACE_S = 0.5
SETTLE_S = 10.0
"""By then an API server serves a definition after its last change. One of several API servers waits 5 s."""


class NoMatch(Exception):
    """The server serves no such kind or resource."""

    reason = "NoMatch"

    def __init__(self, what: str) -> None:
        super().__init__(f"no matches for {what}")


def never() -> float:
    """For mappers that nobody notifies of changed definitions."""
    return float("-inf")


class Mapper:
    """Looks up served resources. ``changed_s``: the monotonic time at which a definition last changed."""

    def __init__(self, client: Client, clock: Clock, changed_s: Callable[[], float] = never) -> None:
        self._client = client
        self._clock = clock
        self._changed_s = changed_s
        self._known: Discovery | None = None
        self._fetched = float("-inf")
        self._lock = asyncio.Lock()

    async def discovery(self, *, younger_than_s: float = REFRESH_S) -> Discovery:
        """The discovery, younger than ``younger_than_s``. Raises RequestError."""
        asked = self._clock.monotonic()
        if self._known is not None and asked - self._fetched < younger_than_s:
            return self._known
        async with self._lock:
            if self._known is None or self._fetched <= asked - younger_than_s:
                started = self._clock.monotonic()
                self._known = await discover(self._client)
                self._fetched = started
            return self._known

    async def having(self, has: Callable[[Discovery], bool]) -> Discovery:
        """The discovery; a new one if the known one does not have this, and a new one may. Raises RequestError."""
        found = await self.discovery()
        age_s = self._fetched - self._changed_s()
        if not has(found) and age_s < SETTLE_S:
            found = await self.discovery(younger_than_s=max(PACE_S, age_s))
        return found

    async def kind(self, group: str, kind: str, version: str = "") -> ServedResource:
        """The resource of a kind, which may be in lower case; without a version the preferred one.

        Raises NoMatch, RequestError.
        """
        named = f'kind "{kind}" in {_where(group, version)}'

        def find(known: Discovery) -> ServedResource | None:
            return known.find_kind(group, kind, version) or known.find_lower_kind(group, kind, version)

        return await self._look(find, named)

    async def resource(self, group: str, plural: str, version: str = "") -> ServedResource:
        """A resource by its plural. Raises NoMatch, RequestError."""
        named = f'resource "{plural}" in {_where(group, version)}'
        return await self._look(lambda known: known.find(group, plural, version), named)

    async def _look(self, find: Callable[[Discovery], ServedResource | None], named: str) -> ServedResource:
        found = find(await self.having(lambda known: find(known) is not None))
        if found is None:
            raise NoMatch(named)
        return found


def _where(group: str, version: str) -> str:
    if not version:
        return f'group "{group}"'
    return f'version "{group}/{version}"' if group else f'version "{version}"'
