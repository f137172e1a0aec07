"""The rules of an aggregated ClusterRole: those of all that its selectors choose, each once.

upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go
"""

from collections.abc import Iterable

from kcm_cli.api.rbac import CLUSTER_ROLES, ClusterRole
from kcm_cli.machinery.codec import Doc, encode
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.planning.actions import APPLY, Patch

_FIELDS = ("apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs")


def plan(role: ClusterRole, all_roles: Iterable[ClusterRole], *, complete: bool) -> Patch | None:
    """What is applied to an aggregated ClusterRole; None if it has these rules already.

    complete: all roles could be decoded; else no rule is taken away. Raises FormatError for a selector that cannot
    be used.
    """
    rules = rules_of(role, all_roles)
    if not complete:
        rules = kept(role, rules)
    return None if same(role, rules) else Patch(CLUSTER_ROLES, "", role.name, applied(role, rules), APPLY)


def rules_of(role: ClusterRole, all_roles: Iterable[ClusterRole]) -> list[Doc]:
    """In order of the selectors, then of names. Raises FormatError for a selector that cannot be used."""
    rule = role.aggregation_rule
    others = sorted((other for other in all_roles if other.name != role.name), key=lambda other: other.name)
    found: dict[bytes, Doc] = {}
    for label_selector in rule.cluster_role_selectors if rule is not None else ():
        selector = from_label_selector(label_selector)
        for other in others:
            if selector.matches(other.labels):
                for own in map(_plain, other.rules or ()):
                    found.setdefault(encode(own), own)
    return list(found.values())


def kept(role: ClusterRole, rules: list[Doc]) -> list[Doc]:
    """These rules, and those that the role has now: any of those may be of a part that cannot be decoded."""
    known = set(map(encode, rules))
    return [*rules, *(own for own in map(_plain, role.rules or ()) if encode(own) not in known)]


def same(role: ClusterRole, rules: list[Doc]) -> bool:
    """Whether the role has these rules already; none and an empty list are the same."""
    return [_plain(own) for own in role.rules or ()] == rules


def applied(role: ClusterRole, rules: list[Doc]) -> Doc:
    """What is applied: this controller owns the rules and nothing else; where there are none, not even those."""
    named: Doc = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": role.name}}
    return {**named, "rules": rules} if rules else named


def _plain(rule: Doc) -> Doc:
    return {field: rule[field] for field in _FIELDS if rule.get(field)}
