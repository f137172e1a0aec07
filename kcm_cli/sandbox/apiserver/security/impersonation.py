"""Impersonation by the Impersonate-* headers.

Modes are tried in order, starting with the one that the same user used last. The first one that allows it applies. If
none does, the first error is returned. The constrained modes require permissions for the request
(``impersonate-on:MODE:VERB``) and for the user (``impersonate:MODE``), the old mode only ``impersonate``.

upstream: staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kcm_cli.api.well_known import AUTHENTICATED, MASTERS, UNAUTHENTICATED
from kcm_cli.component.user_headers import decoded
from kcm_cli.machinery import names
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.recent import Bounded
from kcm_cli.machinery.urls import path_unescaped
from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer, refusal
from kcm_cli.sandbox.apiserver.security.service_accounts import (
    EXTRA_PREFIX,
    groups_of,
    split_user_name,
)
from kcm_cli.sandbox.apiserver.types import ANONYMOUS, ApiError, RequestInfo, User
from kcm_cli.sandbox.apiserver.validation.labels import domain_prefixed_path

_AUTHENTICATION = "authentication.k8s.io"
_EXTRA_HEADER = "impersonate-extra-"
_NODE_PREFIX, _NODES = "system:node:", "system:nodes"
_REMEMBERED = 10_000
_MANY = 4
"""From this number of groups or extras on, a permission for all of them is checked first."""


class _Mode(msgspec.Struct, frozen=True):
    """A mode. ``name``: empty for the old mode."""

    name: str

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"

    @property
    def group(self) -> str:
        return _AUTHENTICATION if self.name else ""

    def applies(self, wanted: User, asking: User) -> bool:
        node, account = _node(wanted.name), split_user_name(wanted.name)
        bare = not (wanted.uid or wanted.groups or wanted.extra)
        match self.name:
            case "associated-node":
                own = asking.extra.get(f"{EXTRA_PREFIX}node-name", ())
                is_account = split_user_name(asking.name) is not None
                return bare and node is not None and is_account and own == (node,)
            case "arbitrary-node":
                return bare and node is not None
            case "serviceaccount":
                return bare and account is not None
            case "user-info":
                return node is None and account is None
        return True


_MODES = (
    _Mode("associated-node"),
    _Mode("arbitrary-node"),
    _Mode("serviceaccount"),
    _Mode("user-info"),
    _Mode(""),
)


class Impersonator:
    """Determines the effective user of requests."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._used: Bounded[str, _Mode] = Bounded(_REMEMBERED)

    def impersonate(self, user: User, headers: Mapping[str, str], info: RequestInfo) -> User:
        """The impersonated user, or ``user`` without impersonation.

        headers: with names in lower case, and repeated ones joined by newlines. Raises ApiError 400 for headers without
        a user, 403.
        """
        if not any([name.startswith("impersonate-") for name in headers]):
            return user
        wanted = _wanted(headers)
        if wanted is None:
            return user
        first: ApiError | None = None
        for mode in self._modes(user):
            if not mode.applies(wanted, user):
                continue
            try:
                found = self._attempt(mode, user, wanted, info)
            except ApiError as error:
                first = first or error
                continue
            self._used[user.name] = mode
            return found
        assert first is not None  # the old mode applies to all
        raise first

    def _modes(self, user: User) -> tuple[_Mode, ...]:
        """The modes, starting with the one that this user used last."""
        last = self._used.get(user.name)
        return _MODES if last is None else (last, *(mode for mode in _MODES if mode is not last))

    def _attempt(self, mode: _Mode, user: User, wanted: User, info: RequestInfo) -> User:
        if mode.name:
            self._authorizer.require(user, replace(info, verb=f"impersonate-on:{mode.name}:{info.verb}"))
        groups = self._check_name(mode, user, wanted)
        if wanted.uid:
            self._require(user, mode, _AUTHENTICATION, "uids", wanted.uid)
        self._check_groups(mode, user, wanted.groups)
        self._check_extra(mode, user, wanted.extra)
        if wanted.name == ANONYMOUS.name:
            groups = _with(groups, UNAUTHENTICATED)
        elif UNAUTHENTICATED not in groups:
            groups = _with(groups, AUTHENTICATED)
        return replace(wanted, groups=groups)

    def _check_name(self, mode: _Mode, user: User, wanted: User) -> tuple[str, ...]:
        """Check the permission for the user's name. Returns the user's groups."""
        node = _node(wanted.name) if mode.name else None
        if node is not None:
            name = "*" if mode.name == "associated-node" else node
            self._require(user, mode, mode.group, "nodes", name)
            return (_NODES,)
        account = split_user_name(wanted.name)
        if account is None:
            self._require(user, mode, mode.group, "users", wanted.name)
            return wanted.groups
        namespace, name = account
        self._require(user, mode, mode.group, "serviceaccounts", name, namespace=namespace)
        return wanted.groups or groups_of(namespace)

    def _check_groups(self, mode: _Mode, user: User, groups: Sequence[str]) -> None:
        if not groups:
            return
        if mode.name:
            info = RequestInfo(mode.verb, "", True, mode.group, plural="groups")
            if "" in groups:
                raise refusal(user, info, "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                info = replace(info, name=MASTERS)
                raise refusal(user, info, "impersonating the system:masters group is not allowed")
            if len(groups) >= _MANY and self._allowed(user, replace(info, name="*")):
                return
        for group in groups:
            self._require(user, mode, mode.group, "groups", group)

    def _check_extra(self, mode: _Mode, user: User, extra: Mapping[str, tuple[str, ...]]) -> None:
        if not extra:
            return
        info = RequestInfo(mode.verb, "", True, _AUTHENTICATION, plural="userextras")
        if mode.name:
            why = next(_wrong_extra(extra), "")
            if why:
                raise refusal(user, info, why)
            large = len(extra) >= _MANY or sum(map(len, extra.values())) >= _MANY
            if large and self._allowed(user, replace(info, subresource="*", name="*")):
                return
        for key, values in extra.items():
            for value in values:
                self._authorizer.require(user, replace(info, subresource=key, name=value))

    def _require(self, user: User, mode: _Mode, group: str, plural: str, name: str, *, namespace: str = "") -> None:
        info = RequestInfo(mode.verb, "", True, group, plural=plural, name=name, namespace=namespace)
        self._authorizer.require(user, info)

    def _allowed(self, user: User, info: RequestInfo) -> bool:
        return self._authorizer.authorize(user, info).allowed


def _wanted(headers: Mapping[str, str]) -> User | None:
    name = decoded(headers.get("impersonate-user", ""))
    uid = decoded(headers.get("impersonate-uid", ""))
    grouped = "impersonate-group" in headers
    groups = tuple(decoded(headers["impersonate-group"]).split("\n")) if grouped else ()
    extra: dict[str, tuple[str, ...]] = {}
    for header in sorted(headers):
        if header.startswith(_EXTRA_HEADER):
            key = path_unescaped(header[len(_EXTRA_HEADER) :])
            extra[key] = extra.get(key, ()) + tuple(decoded(headers[header]).split("\n"))
    if name:
        return User(name, uid, groups, extra)
    if uid or groups or extra:
        shown = _go_user(uid, groups, extra)
        error = bad_request(f"requested {shown} without impersonating a user name")
        error.headers["x-content-type-options"] = "nosniff"
        raise error
    return None


def _go_user(uid: str, groups: Sequence[str], extra: Mapping[str, Sequence[str]]) -> str:
    """A user in the format of Go's ``%#v``, for an error."""
    shown = ", ".join(f"{quote(key)}:{_go_strings(extra[key])}" for key in sorted(extra))
    extras = f"map[string][]string{{{shown}}}" if extra else "map[string][]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{_go_strings(groups)}, Extra:{extras}}}'


def _go_strings(values: Sequence[str]) -> str:
    return f"[]string{{{', '.join(map(quote, values))}}}" if values else "[]string(nil)"


def _node(user: str) -> str | None:
    """The node of a kubelet's user name, otherwise None."""
    if not user.startswith(_NODE_PREFIX):
        return None
    name = user[len(_NODE_PREFIX) :]
    return None if names.dns1123_subdomain(name) else name


def _wrong_extra(extra: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for key, values in extra.items():
        if not key:
            yield "impersonating the empty string key in extra is not allowed"
        elif wrong := [f"{error.field}: {error.message}" for error in domain_prefixed_path(key, "extra.key")]:
            yield f"impersonating an invalid key in extra is not allowed: {aggregated(wrong)}"
        elif key != key.lower():
            yield f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        elif not values:
            yield "impersonating empty values in extra is not allowed"
        elif "" in values:
            yield "impersonating the empty string value in extra is not allowed"


def _with(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)
