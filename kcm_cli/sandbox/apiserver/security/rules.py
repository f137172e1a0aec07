"""Policy rules of RBAC.

upstream: pkg/apis/rbac/v1/evaluation_helpers.go, component-helpers auth/rbac/validation/policy_comparator.go,
pkg/registry/rbac/validation/policy_compact.go
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import msgspec

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Tree

_Names = tuple[str, ...]
_MOST_COMPARED = 100_000
"""A permission takes some microseconds to compare with a rule, and rules of some kilobytes have billions of them."""


class Rule(msgspec.Struct, frozen=True):
    """rbac.authorization.k8s.io/v1 PolicyRule."""

    verbs: _Names = ()
    groups: _Names = ()
    resources: _Names = ()
    names: _Names = ()
    urls: _Names = ()

    def resource_doc(self) -> Tree:
        """The rule as a ResourceRule of SelfSubjectRulesReview."""
        parts = (("apiGroups", self.groups), ("resources", self.resources), ("resourceNames", self.names))
        return {"verbs": list(self.verbs), **{key: list(values) for key, values in parts if values}}

    def url_doc(self) -> Tree:
        """The rule as a NonResourceRule of SelfSubjectRulesReview."""
        return {"verbs": list(self.verbs), "nonResourceURLs": list(self.urls)}

    def allows(self, verb: str, group: str, words: Iterable[str], name: str) -> bool:
        """Whether a request for a resource is allowed. ``words``: what rules may call the resource."""
        return (
            ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.groups or group in self.groups)
            and any(word in self.resources for word in words)
            and (not self.names or name in self.names)
        )

    def allows_url(self, verb: str, path: str) -> bool:
        """Whether a request for a nonResourceURL is allowed."""
        if "*" not in self.verbs and verb not in self.verbs:
            return False
        return any(_url_covers(url, path) for url in self.urls)


def rules_of(role: Tree) -> list[Rule]:
    """The rules of a Role or ClusterRole document."""
    return [
        Rule(
            tuple(each.get("verbs") or ()),
            tuple(each.get("apiGroups") or ()),
            tuple(each.get("resources") or ()),
            tuple(each.get("resourceNames") or ()),
            tuple(each.get("nonResourceURLs") or ()),
        )
        for each in role.get("rules") or ()
    ]


class _Held(msgspec.Struct, frozen=True):
    """A rule with which many permissions are compared."""

    verbs: frozenset[str]
    groups: frozenset[str]
    resources: frozenset[str]
    names: frozenset[str]
    urls: _Names

    @classmethod
    def of(cls, rule: Rule) -> "_Held":
        verbs, groups, resources, names = map(frozenset, (rule.verbs, rule.groups, rule.resources, rule.names))
        return cls(verbs, groups, resources, names, rule.urls)


class TooManyRights(Exception):
    """The wanted rules have more permissions than can be compared one by one."""


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The permissions of the wanted rules (rules with one verb and resource each) that the owned rules do not cover.
    Raises TooManyRights.

    The permissions of a rule are the product of its lists. Only those of rules that no owned rule covers as a whole
    are compared, with the owned rules that may cover some of them.
    """
    held = [_Held.of(rule) for rule in owned]
    left = [rule for rule in wanted if not any(_covers(own, rule) for own in held)]
    near = [[own for own in held if _covers_some(own, rule)] for rule in left]
    if sum(_count(rule) * max(len(some), 1) for rule, some in zip(left, near, strict=True)) > _MOST_COMPARED:
        raise TooManyRights
    return [
        right
        for rule, some in zip(left, near, strict=True)
        for right in _rights(rule)
        if not any(_covers(own, right) for own in some)
    ]


def _count(rule: Rule) -> int:
    """The number of permissions of a rule."""
    resources = len(rule.groups) * len(rule.resources) * max(len(rule.names), 1)
    return (resources + len(rule.urls)) * len(rule.verbs)


def described(rights: Iterable[Rule]) -> list[str]:
    """Permissions in the format of an escalation error: compacted by resource, sorted."""
    return sorted({_text(rule) for rule in _compacted(rights)})


def _rights(rule: Rule) -> Iterator[Rule]:
    for group, resource, verb in product(rule.groups, rule.resources, rule.verbs):
        if not rule.names:
            yield Rule((verb,), (group,), (resource,))
        for name in rule.names:
            yield Rule((verb,), (group,), (resource,), (name,))
    for url, verb in product(rule.urls, rule.verbs):
        yield Rule((verb,), urls=(url,))


def _covers(own: _Held, right: Rule) -> bool:
    return (
        ("*" in own.verbs or own.verbs.issuperset(right.verbs))
        and ("*" in own.groups or own.groups.issuperset(right.groups))
        and all(_resource_covered(own.resources, resource) for resource in right.resources)
        and all(any(_url_covers(url, path) for url in own.urls) for path in right.urls)
        and (not own.names or (bool(right.names) and own.names.issuperset(right.names)))
    )


def _covers_some(own: _Held, rule: Rule) -> bool:
    """False if an owned rule covers no permission of another rule, by its verbs, groups and resources."""
    if "*" not in own.verbs and own.verbs.isdisjoint(rule.verbs):
        return False
    if rule.urls:
        return bool(own.urls) or bool(rule.resources)
    groups = "*" in own.groups or not own.groups.isdisjoint(rule.groups)
    return groups and any(_resource_covered(own.resources, resource) for resource in rule.resources)


def _resource_covered(own: frozenset[str], resource: str) -> bool:
    if "*" in own or resource in own:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"*/{subresource}" in own


def _url_covers(own: str, path: str) -> bool:
    return own == path or (own.endswith("*") and path.startswith(own.rstrip("*")))


def _compacted(rights: Iterable[Rule]) -> Iterator[Rule]:
    """Merge the permissions for a resource (and name) to a rule with all verbs."""
    merged: dict[tuple[_Names, _Names, _Names], list[str]] = {}
    for right in rights:
        if right.urls:
            yield right
        else:
            merged.setdefault((right.groups, right.resources, right.names), []).extend(right.verbs)
    for (groups, resources, names), verbs in merged.items():
        yield Rule(tuple(verbs), groups, resources, names)


def _text(rule: Rule) -> str:
    parts = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.urls),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    shown = [f"{word}:[{' '.join(map(quote, values))}]" for word, values in parts if values]
    return "{" + ", ".join(shown) + "}"
