"""Privilege escalation: users can grant only permissions that they have, except with the verbs escalate and bind.

upstream: pkg/registry/rbac/{escalation_check,helpers}.go, pkg/registry/rbac/*/policybased/storage.go
"""

from kcm_cli.api.well_known import MASTERS
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.errors import forbidden, not_found
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.security.bindings import CLUSTER_ROLES, GROUP, ROLES
from kcm_cli.sandbox.apiserver.security.rules import Rule, TooManyRights, described, rules_of, uncovered
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, RequestInfo, Tree

_EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
_COLLECTED = ("ownerReferences", "finalizers", "selfLink", "managedFields")


class EscalationGuard:
    """Checks writes of roles and bindings."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def check(self, attrs: Attributes) -> None:
        """Check a write, after mutation and before validation. Raises ApiError 403, 404, 500."""
        if attrs.resource.gvr.group != GROUP or attrs.obj is None or MASTERS in attrs.user.groups:
            return
        if attrs.operation not in ("CREATE", "UPDATE") or _only_collected(attrs):
            return
        if attrs.resource.gvr.plural in (ROLES.plural, CLUSTER_ROLES.plural):
            self._check_role(attrs)
        else:
            self._check_binding(attrs)

    def _check_role(self, attrs: Attributes) -> None:
        plural = attrs.resource.gvr.plural
        name = attrs.name if attrs.operation == "UPDATE" else ""
        info = RequestInfo("escalate", "", True, GROUP, "*", plural, namespace=attrs.namespace, name=name)
        if self._authorizer.authorize(attrs.user, info).allowed:
            return
        role: Tree = attrs.obj or {}
        if why := self._missing(attrs, rules_of(role)):
            raise self._refusal(attrs, why)
        if plural != CLUSTER_ROLES.plural or not (_aggregates(role) or _aggregates(attrs.old or {})):
            return
        if self._missing(attrs, list(_EVERYTHING)):
            raise self._refusal(attrs, "must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, attrs: Attributes) -> None:
        binding: Tree = attrs.obj or {}
        ref: Tree = binding.get("roleRef") or {}
        kind, name = ref.get("kind", ""), ref.get("name", "")
        gvr = {"ClusterRole": CLUSTER_ROLES, "Role": ROLES}.get(kind)
        if gvr is None:
            raise ApiError(500, "", f"unsupported role reference kind: {quote(kind)}")
        info = RequestInfo(
            "bind", "", True, ref.get("apiGroup", ""), "*", gvr.plural, namespace=attrs.namespace, name=name
        )
        if self._authorizer.authorize(attrs.user, info).allowed:
            return
        rules = self._authorizer.bindings.role_rules(kind, attrs.namespace, name)
        if rules is None:
            raise not_found(GROUP, attrs.resource.gvr.plural, name)  # upstream's error has the request's resource
        if why := self._missing(attrs, rules):
            raise self._refusal(attrs, why)

    def _missing(self, attrs: Attributes, wanted: list[Rule]) -> str:
        """The error if the user lacks permissions of these rules, otherwise empty."""
        owned, errors = self._authorizer.rules(attrs.user, attrs.namespace)
        groups = " ".join(map(quote, attrs.user.groups))
        who = f"user {quote(attrs.user.name)} (groups=[{groups}])"
        try:
            missing = uncovered(owned, wanted)
        except TooManyRights:
            return f"{who} is attempting to grant more RBAC permissions than can be checked"
        if not missing:
            return ""
        listed = "\n".join(described(missing))
        text = f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"
        return f"{text}; resolution errors: [{aggregated(errors)}]" if errors else text

    def _refusal(self, attrs: Attributes, why: str) -> ApiError:
        return forbidden(GROUP, attrs.resource.gvr.plural, attrs.name, why)


def _aggregates(role: Tree) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(attrs: Attributes) -> bool:
    """Whether an update changes only metadata that the garbage collector writes."""
    old, new = attrs.old, attrs.obj
    if old is None or new is None:
        return False
    return _without_collected(old) == _without_collected(new)


def _without_collected(doc: Tree) -> Tree:
    metadata = {key: value for key, value in doc["metadata"].items() if key not in _COLLECTED}
    return {**doc, "metadata": metadata}
