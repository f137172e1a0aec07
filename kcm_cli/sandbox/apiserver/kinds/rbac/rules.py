"""Roles and bindings.

upstream: pkg/apis/rbac/validation/validation.go
"""

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print
from kcm_cli.sandbox.apiserver.validation.rules import (
    SEGMENT,
    SUBDOMAIN,
    Rule,
    always,
    by_value,
    each,
    enum,
    fields,
    nonempty,
    required,
)

_GROUP = "rbac.authorization.k8s.io"
_SUPPLY = "resource rules must supply at least one"
_RESOURCES = fields(
    required("apiGroups", detail=f"{_SUPPLY} api group"), required("resources", detail=f"{_SUPPLY} resource")
)


def _paths_or_resources(namespaced: bool) -> Rule:
    def check(rule: Tree, path: str) -> Errors:
        urls, place = rule.get("nonResourceURLs"), f"{path}.nonResourceURLs"
        if not urls:
            yield from _RESOURCES(rule, path)
            return
        if namespaced:
            yield errors.invalid(place, urls, "namespaced rules cannot apply to non-resource URLs")
        if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield errors.invalid(place, urls, detail)

    return check


def _rules(namespaced: bool) -> Rule:
    verbs = required("verbs", detail="verbs must contain at least one value")
    return fields(each("rules", fields(verbs, _paths_or_resources(namespaced))))


RULES, CLUSTER_RULES = _rules(True), _rules(False)


def same_role(new: Tree, old: Tree) -> Errors:
    """Check that a binding keeps its role."""
    ref = new.get("roleRef") or {}
    if ref != (old.get("roleRef") or {}):
        yield errors.invalid("roleRef", go_print.internal("rbac.RoleRef", ref), "cannot change roleRef")


def _account(namespaced: bool) -> Rule:
    group = nonempty("apiGroup", lambda value, path: [errors.not_supported(path, value, [""])])
    return fields(nonempty("name", SUBDOMAIN), group, *(() if namespaced else (required("namespace"),)))


def _binding(namespaced: bool) -> Rule:
    group = fields(always("apiGroup", enum(_GROUP)))
    subject = by_value("kind", {"ServiceAccount": _account(namespaced), "User": group, "Group": group})
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    role = fields(group, always("kind", enum(*kinds)), required("name", SEGMENT))
    return fields(always("roleRef", role, default={}), each("subjects", fields(required("name"), subject)))


BINDING, CLUSTER_BINDING = _binding(True), _binding(False)
