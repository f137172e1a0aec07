"""Maps kinds to resources and back, by discovery that is fetched when it is first needed. upstream: RESTMapper.

Guarantees: before NoMatch is raised discovery is fetched again, but at most once in REFRESH_S; one fetch at a time.

upstream: staging/src/k8s.io/client-go/restmapper/discovery.go
"""

import asyncio
from collections.abc import Callable

from kcm_cli.component.clock import Clock
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.served import Discovery, ServedResource, Subresource

REFRESH_S = 30.0
_MISS_PERIOD_S = 1.0


class NoMatch(Exception):
    """The server serves no such kind or resource."""

    reason = "NoMatch"

    def __init__(self, what: str) -> None:
        super().__init__(f"no matches for {what}")


class Mapper:
    """Looks up served resources. Call ``invalidate`` when CRDs have changed."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
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

    def invalidate(self) -> None:
        """Fetch discovery again at the next lookup."""
        self._known = None

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

    async def scale(self, group: str, kind: str, version: str = "") -> tuple[ServedResource, Subresource]:
        """The resource of a kind and its scale subresource. Raises NoMatch, RequestError."""
        served = await self.kind(group, kind, version)
        scale = served.subresources.get("scale")
        if scale is None:
            raise NoMatch(f'scale subresource of kind "{kind}" in {_where(group, version)}')
        return served, scale

    async def _look(self, find: Callable[[Discovery], ServedResource | None], named: str) -> ServedResource:
        found = find(await self.discovery())
        if found is None:
            found = find(await self.discovery(younger_than_s=_MISS_PERIOD_S))
        if found is None:
            raise NoMatch(named)
        return found


def _where(group: str, version: str) -> str:
    if not version:
        return f'group "{group}"'
    return f'version "{group}/{version}"' if group else f'version "{version}"'
