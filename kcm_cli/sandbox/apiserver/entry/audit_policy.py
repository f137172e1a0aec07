"""Audit policies: at which level a request is recorded.

upstream: staging/src/k8s.io/apiserver/pkg/audit/policy/{checker,reader}.go, pkg/apis/audit/validation/validation.go
"""

from enum import IntEnum
from typing import Literal

import msgspec

from kcm_cli.sandbox.apiserver.types import RequestInfo, User

VERSION = "audit.k8s.io/v1"
STARTED, COMPLETE = "ResponseStarted", "ResponseComplete"
Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]


class Level(IntEnum):
    """How much of a request is recorded."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def text(self) -> str:
        return _TEXTS[self]


_TEXTS = {
    Level.NONE: "None",
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}
_LEVELS = {text: level for level, text in _TEXTS.items()}


class GroupResources(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Resources of an API group. ``resources``: ``pods``, ``pods/log``, ``pods/*``, ``*/scale`` or ``*``; none: all."""

    group: str = ""
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()

    def covers(self, info: RequestInfo) -> bool:
        """Whether it names the resource of a request."""
        if self.group not in (info.group, "*"):
            return False
        if not self.resources:
            return True
        if self.resource_names and info.name not in self.resource_names:
            return False
        part = info.subresource
        names = (
            "*",
            f"{info.plural}/{part}" if part else info.plural,
            f"{info.plural}/*",
            f"*/{part}" if part else "*",
        )
        return any(name in self.resources for name in names)


class Rule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A rule of a policy. An empty field matches everything."""

    level: Literal["None", "Metadata", "Request", "RequestResponse"]
    users: tuple[str, ...] = ()
    user_groups: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[GroupResources, ...] = ()
    namespaces: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")
    omit_stages: tuple[Stage, ...] = ()
    omit_managed_fields: bool | None = None

    def covers(self, user: User, info: RequestInfo) -> bool:
        """Whether it applies to a request."""
        if (self.users and user.name not in self.users) or (self.verbs and info.verb not in self.verbs):
            return False
        if self.user_groups and not set(self.user_groups).intersection(user.groups):
            return False
        if self.namespaces or self.resources:
            inside = not self.namespaces or info.namespace in self.namespaces
            named = not self.resources or any(one.covers(info) for one in self.resources)
            return info.is_resource and inside and named
        if self.non_resource_urls:
            return not info.is_resource and any(_fits(url, info.path) for url in self.non_resource_urls)
        return True

    def problem(self) -> str:
        """Why it is invalid; empty if it is valid."""
        if self.non_resource_urls and (self.resources or self.namespaces):
            return "rules cannot apply to both resources and nonResourceURLs"
        for url in self.non_resource_urls:
            if url != "*" and (not url.startswith("/") or "*" in url[:-1]):
                return f"nonResourceURLs: {url} must begin with / and may have * at its end only"
        if any(one.resource_names and not one.resources for one in self.resources):
            return "resourceNames requires at least one resource"
        return ""


class Wanted(msgspec.Struct, frozen=True):
    """What a policy wants. without: the stages that are left out. managed_fields: whether bodies have them."""

    level: Level
    without: frozenset[str] = frozenset()
    managed_fields: bool = True


class Policy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An audit policy. The first rule that covers a request decides; without one it is not recorded."""

    rules: tuple[Rule, ...]
    api_version: Literal["audit.k8s.io/v1"] = "audit.k8s.io/v1"
    kind: Literal["Policy"] = "Policy"
    metadata: dict[str, object] = {}
    omit_stages: tuple[Stage, ...] = ()
    omit_managed_fields: bool = False

    def wants(self, user: User, info: RequestInfo) -> Wanted:
        """What is recorded of a request."""
        for rule in self.rules:
            if rule.covers(user, info):
                own = rule.omit_managed_fields
                omitted = self.omit_managed_fields if own is None else own
                stages = frozenset((*self.omit_stages, *rule.omit_stages))
                return Wanted(_LEVELS[rule.level], stages, not omitted)
        return Wanted(Level.NONE)


def policy_of(found: object) -> Policy:
    """A policy from decoded YAML. Raises ValueError."""
    if not isinstance(found, dict) or "apiVersion" not in found or "kind" not in found:
        raise ValueError(f"a policy needs apiVersion: {VERSION} and kind: Policy")
    if (found["apiVersion"], found["kind"]) != (VERSION, "Policy"):
        raise ValueError(f"this is {found['kind']} of {found['apiVersion']}, not Policy of {VERSION}")
    try:
        policy = msgspec.convert(found, Policy)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None
    if not policy.rules:
        raise ValueError("a policy needs at least one rule")
    for number, rule in enumerate(policy.rules):
        if problem := rule.problem():
            raise ValueError(f"rules[{number}]: {problem}")
    return policy


def _fits(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _writes(level: str, *resources: GroupResources) -> Rule:
    return Rule(level, resources=resources)  # type: ignore[arg-type]  # one of the literals


DEFAULT = Policy(
    (
        Rule("None", verbs=("get", "list", "watch")),
        _writes("None", GroupResources("coordination.k8s.io")),
        _writes("None", GroupResources("authentication.k8s.io"), GroupResources("authorization.k8s.io")),
        _writes("Metadata", GroupResources("", ("secrets", "configmaps", "serviceaccounts/token"))),
        Rule("RequestResponse"),
    )
)
"""Of ``kcm sandbox`` without a policy file: all writes but Leases and reviews; no values of Secrets and ConfigMaps."""
