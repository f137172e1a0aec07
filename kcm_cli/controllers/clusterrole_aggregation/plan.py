"""The rules of an aggregated ClusterRole: those of all roles that its selectors match, without duplicates.

An aggregated role among them stands for its own parts. At rest its rules are theirs, but where roles are parts of each
other: with the rules themselves, each would keep a rule for ever that the other has from it.

upstream: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go
"""

from collections.abc import Iterable, Sequence

from kcm_cli.api.rbac import CLUSTER_ROLES, ClusterRole
from kcm_cli.machinery.codec import Doc, encode
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.labels import from_label_selector
from kcm_cli.planning.actions import Apply

MANAGER = "clusterrole-aggregation-controller"
MOST = 64
"""So many aggregated roles are looked into for one; the rules of others are taken as they are."""
_FIELDS = ("apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs")


def plan(role: ClusterRole, all_roles: Iterable[ClusterRole], *, complete: bool) -> Apply | None:
    """The write to an aggregated ClusterRole; None if its rules are right.

    complete: whether all roles could be decoded. If not, no rule is removed. Raises FormatError for an invalid
    selector.
    """
    rules = rules_of(role, all_roles, most=MOST if complete else 0)
    if not complete:
        rules = kept(role, rules)
    if same(role, rules):
        return None
    return Apply(CLUSTER_ROLES, "", role.name, applied(role, rules), MANAGER, reason="aggregated rules changed")


def rules_of(role: ClusterRole, all_roles: Iterable[ClusterRole], *, most: int = MOST) -> list[Doc]:
    """The rules, in the order of the selectors and of the roles' names. Raises FormatError for an invalid selector.

    most: how many aggregated roles among its parts are looked into.
    """
    roles = sorted(all_roles, key=lambda one: one.name)
    found: dict[bytes, Doc] = {}
    seen, parts = {role.name}, [iter(_parts(role, roles))]
    while parts:
        part = next(parts[-1], None)
        if part is None:
            parts.pop()
        elif part.name not in seen:
            seen.add(part.name)
            inner = _inner_parts(part, roles) if most > 0 else None
            if inner is None:
                for own in map(_plain, part.rules or ()):
                    found.setdefault(encode(own), own)
            else:
                most -= 1
                parts.append(iter(inner))
    return list(found.values())


def _parts(role: ClusterRole, roles: Sequence[ClusterRole]) -> list[ClusterRole]:
    """The roles that an aggregated role selects; one may come twice. Raises FormatError for an invalid selector."""
    rule = role.aggregation_rule
    selectors = map(from_label_selector, rule.cluster_role_selectors if rule is not None else ())
    return [one for selector in selectors for one in roles if selector.matches(one.labels)]


def _inner_parts(part: ClusterRole, roles: Sequence[ClusterRole]) -> list[ClusterRole] | None:
    """The parts of a part; None for one whose rules are its own, as if its selectors are invalid."""
    if part.aggregation_rule is None:
        return None
    try:
        return _parts(part, roles)
    except FormatError:
        return None


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
