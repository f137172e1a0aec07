"""The rules of an aggregated ClusterRole: those of all roles that its selectors match, without duplicates.

upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go
"""

from collections.abc import Iterable

from kcm_cli.api.rbac import CLUSTER_ROLES, ClusterRole
from kcm_cli.machinery.codec import Doc, encode
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.planning.actions import Apply

MANAGER = "clusterrole-aggregation-controller"
_FIELDS = ("apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs")


def plan(role: ClusterRole, all_roles: Iterable[ClusterRole], *, complete: bool) -> Apply | None:
    """The write to an aggregated ClusterRole; None if its rules are right.

    complete: whether all roles could be decoded. If not, no rule is removed. Raises FormatError for an invalid
    selector.
    """
    rules = rules_of(role, all_roles)
    if not complete:
        rules = kept(role, rules)
    if same(role, rules):
        return None
    return Apply(CLUSTER_ROLES, "", role.name, applied(role, rules), MANAGER, reason="aggregated rules changed")


def rules_of(role: ClusterRole, all_roles: Iterable[ClusterRole]) -> list[Doc]:
    """The rules, in the order of the selectors and of the roles' names. Raises FormatError for an invalid selector."""
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
    """These rules, and the present ones of the role, which may come from a role that cannot be decoded."""
    known = set(map(encode, rules))
    return [*rules, *(own for own in map(_plain, role.rules or ()) if encode(own) not in known)]


def same(role: ClusterRole, rules: list[Doc]) -> bool:
    """Whether the role has these rules. Absent rules equal an empty list."""
    return [_plain(own) for own in role.rules or ()] == rules


def applied(role: ClusterRole, rules: list[Doc]) -> Doc:
    """The document to apply. It owns the field rules only, and lacks it if there are no rules. The uid prevents that a
    role is created."""
    metadata: Doc = {"name": role.name, "uid": role.uid}
    named: Doc = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata}
    return {**named, "rules": rules} if rules else named


def _plain(rule: Doc) -> Doc:
    return {field: rule[field] for field in _FIELDS if rule.get(field)}
