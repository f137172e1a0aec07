"""Authorization by RBAC. Members of system:masters may do anything.

upstream: plugin/pkg/auth/authorizer/rbac/rbac.go, apiserver pkg/authorization/authorizerfactory,
pkg/endpoints/handlers/responsewriters/errors.go
"""

from collections.abc import Sequence

import msgspec

from kcm_cli.api.well_known import MASTERS
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.errors import forbidden
from kcm_cli.sandbox.apiserver.security.bindings import Bindings
from kcm_cli.sandbox.apiserver.security.rules import Rule
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, RequestInfo, User


class Decision(msgspec.Struct, frozen=True):
    """A decision. reason: why it is allowed, or the errors of a denial; may be empty."""

    allowed: bool
    reason: str = ""


_MASTER = Decision(True)
_REFUSED = Decision(False)
_ANYTHING = [Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",))]
"""The rules of AlwaysAllow."""
_NOBODY = Decision(False, "Everything is forbidden.")


class Authorizer:
    """Decides by the current RBAC objects of a store. modes: see ``Settings.authorization``. The first one that allows
    a request gives the reason."""

    def __init__(self, store: Store, modes: Sequence[str] = ("RBAC",)) -> None:
        self._bindings = Bindings(store)
        self._fixed: Decision | None = None
        rbac_first = "RBAC" in modes[: modes.index("AlwaysAllow")] if "AlwaysAllow" in modes else "RBAC" in modes
        if not rbac_first:
            self._fixed = _MASTER if "AlwaysAllow" in modes else _NOBODY
        self._otherwise = _MASTER if "AlwaysAllow" in modes else None
        """The decision about what RBAC does not allow; None: RBAC's."""

    @property
    def bindings(self) -> Bindings:
        """The rules of users."""
        return self._bindings

    def authorize(self, user: User, info: RequestInfo) -> Decision:
        """Whether a user may make a request. Takes some microseconds."""
        if MASTERS in user.groups:
            return _MASTER
        if self._fixed is not None:
            return self._fixed
        decision = self._by_rbac(user, info)
        return decision if decision.allowed or self._otherwise is None else self._otherwise

    def _by_rbac(self, user: User, info: RequestInfo) -> Decision:
        cluster = self._bindings.grants(user, "")
        if not info.is_resource:
            reason = cluster.allows_url(info.verb, info.path)
            return Decision(True, reason) if reason is not None else _denied(cluster.errors)
        what = (info.verb, info.group, info.plural, info.subresource, info.name)
        reason = cluster.allows(*what)
        if reason is None and info.namespace:
            local = self._bindings.grants(user, info.namespace)
            reason = local.allows(*what)
            if reason is None:
                return _denied([*cluster.errors, *local.errors])
        return Decision(True, reason) if reason is not None else _denied(cluster.errors)

    def require(self, user: User, info: RequestInfo) -> Decision:
        """The decision that a user may make a request. Raises ApiError 403 if not."""
        decision = self.authorize(user, info)
        if not decision.allowed:
            raise refusal(user, info, decision.reason)
        return decision

    def rules(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """The rules of a user in a namespace, and errors for roles that do not exist."""
        cluster = self._bindings.grants(user, "")
        anything = _ANYTHING if self._otherwise is not None else []
        if not namespace:
            return [*cluster.rules, *anything], cluster.errors
        local = self._bindings.grants(user, namespace)
        return [*cluster.rules, *local.rules, *anything], [*cluster.errors, *local.errors]


def refusal(user: User, info: RequestInfo, reason: str = "") -> ApiError:
    """403 for a request that a user may not make."""
    words = _words(user, info)
    why = f"{words}: {reason}" if reason else words
    what = (info.group, info.plural, info.name) if info.is_resource else ("", "", "")
    error = forbidden(*what, why)
    error.headers["x-content-type-options"] = "nosniff"
    return error


def _denied(errors: list[str]) -> Decision:
    return Decision(False, f"RBAC: {aggregated(errors)}") if errors else _REFUSED


def _words(user: User, info: RequestInfo) -> str:
    if not info.is_resource:
        return f"User {quote(user.name)} cannot {info.verb} path {quote(info.path)}"
    where = f"in the namespace {quote(info.namespace)}" if info.namespace else "at the cluster scope"
    what = f"cannot {info.verb} resource {quote(info.resource)} in API group {quote(info.group)}"
    return f"User {quote(user.name)} {what} {where}"
