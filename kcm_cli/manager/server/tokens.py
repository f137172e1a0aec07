"""Authenticates bearer tokens: the API server reviews them, and the results are cached.

The cache has keyed hashes of tokens only. It holds positive and negative results, but no errors. Concurrent requests
with the same token share one review, which ends when none of them waits for it.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/token/cache/cached_token_authenticator.go
"""

import hmac
from collections.abc import Awaitable, Callable
from hashlib import sha256

from kcm_cli.component.clock import Clock
from kcm_cli.manager.server.metrics import TokenCacheMetrics
from kcm_cli.manager.server.review import Shared
from kcm_cli.manager.server.user import AuthenticationError, User

Review = Callable[[str], Awaitable[User | None]]
_LIMIT = 4096
_LONGEST = 64 << 10
"""The characters of a token that is reviewed. A longer one would take ten times its size meanwhile."""


class TokenCache:
    """The cache. ``secret``: a random key for the hashes."""

    def __init__(self, review: Review, ttl_s: float, secret: bytes, clock: Clock, metrics: TokenCacheMetrics) -> None:
        self._review = review
        self._ttl_s = ttl_s
        self._secret = secret
        self._clock = clock
        self._metrics = metrics
        self._known: dict[bytes, tuple[float, User | None]] = {}
        self._fetching = Shared[User | None]()

    async def user(self, token: str) -> User | None:
        """The user of a token; None for an unknown token. Raises AuthenticationError, ReviewError."""
        if len(token) > _LONGEST:
            return None
        start = self._clock.monotonic()
        key = hmac.digest(self._secret, token.encode(), sha256)
        entry = self._known.get(key)
        if entry is not None and entry[0] > start:
            self._looked_up("hit", start)
            return entry[1]
        blocked = self._metrics.active.labels("blocked")
        blocked.inc()
        try:
            return await self._fetching.call(key, lambda: self._fetch(key, token))
        finally:
            blocked.dec()
            self._looked_up("miss", start)

    async def _fetch(self, key: bytes, token: str) -> User | None:
        flying = self._metrics.active.labels("in_flight")
        flying.inc()
        outcome = "error"
        try:
            user = await self._review(token)
            outcome = "ok"
        finally:
            flying.dec()
            self._metrics.fetches.labels(outcome).inc()
        if self._ttl_s > 0:
            self._make_room()
            self._known[key] = (self._clock.monotonic() + self._ttl_s, user)
        return user

    def _make_room(self) -> None:
        if len(self._known) < _LIMIT:
            return
        now = self._clock.monotonic()
        self._known = {key: entry for key, entry in self._known.items() if entry[0] > now}
        while len(self._known) >= _LIMIT:
            self._known.pop(next(iter(self._known)))

    def _looked_up(self, outcome: str, start: float) -> None:
        self._metrics.requests.labels(outcome).inc()
        self._metrics.duration.labels(outcome).observe(self._clock.monotonic() - start)


def bearer(header: str) -> str:
    """The token in an Authorization header; empty if there is none."""
    parts = header.strip().split(" ", 2)
    return parts[1] if len(parts) >= 2 and parts[0].lower() == "bearer" else ""


def required(user: User | None) -> User:
    """The user of a token that must be known. Raises AuthenticationError."""
    if user is None:
        raise AuthenticationError("invalid bearer token")
    return user
