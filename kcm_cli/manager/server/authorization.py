"""Authorizes requests: system:masters may do everything, everyone may use the open paths, and the API server decides
the rest.

upstream: staging/src/k8s.io/apiserver/pkg/server/options/authorization.go, pkg/authorization/path
"""

from collections.abc import Iterable
from hashlib import sha256

from kcm_cli.api.well_known import MASTERS
from kcm_cli.component.auth_config import AuthorizationConfig
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.recent import Bounded
from kcm_cli.manager.server.review import Decision, Reviewer, Shared, access_spec, review_access
from kcm_cli.manager.server.user import User

_LIMIT = 8192
_REASON_BYTES = 1024
"""Decisions with a longer reason are not kept, so that all take 4 MiB at most, if their reasons are those of RBAC."""
_ALLOWED = Decision(allowed=True)
_NO_OPINION = Decision()


class OpenPaths:
    """Paths that everyone may use. A trailing * matches every path with that prefix."""

    def __init__(self, paths: Iterable[str]) -> None:
        trimmed = [path.removeprefix("/") for path in paths]
        self._exact = frozenset(path for path in trimmed if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in trimmed if path.endswith("*"))

    def __contains__(self, path: str) -> bool:
        path = path.removeprefix("/")
        return path in self._exact or path.startswith(self._prefixes)


class Authorizer:
    """Decides about a verb on a path. Without a reviewer, only open paths are allowed."""

    def __init__(self, config: AuthorizationConfig, reviewer: Reviewer | None, clock: Clock) -> None:
        self._config = config
        self._open = OpenPaths(config.always_allow_paths)
        self._reviewer = reviewer
        self._clock = clock
        self._asking = Shared[Decision]()
        self._known: Bounded[bytes, tuple[float, Decision]] = Bounded(_LIMIT)

    async def decide(self, user: User, verb: str, path: str) -> Decision:
        """The decision. Raises ReviewError if the API server does not answer."""
        if MASTERS in user.groups or path in self._open:
            return _ALLOWED
        if (reviewer := self._reviewer) is None:
            return _NO_OPINION
        spec = access_spec(user, verb, path)
        key = sha256(codec.encode(spec)).digest()  # a path may take 16 KiB
        entry = self._known.get(key)
        if entry is not None and entry[0] > self._clock.monotonic():
            return entry[1]
        return await self._asking.call(key, lambda: self._ask(reviewer, key, spec))

    async def _ask(self, reviewer: Reviewer, key: bytes, spec: Doc) -> Decision:
        decision = await review_access(reviewer, spec)
        self._remember(key, decision)
        return decision

    def _remember(self, key: bytes, decision: Decision) -> None:
        config = self._config
        ttl_s = config.authorized_cache_ttl_s if decision.allowed else config.unauthorized_cache_ttl_s
        if ttl_s <= 0 or len(decision.reason) > _REASON_BYTES:
            return
        self._known[key] = (self._clock.monotonic() + ttl_s, decision)
