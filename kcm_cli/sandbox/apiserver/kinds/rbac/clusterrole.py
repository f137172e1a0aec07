"""ClusterRole.

Source: pkg/apis/rbac/validation, pkg/registry/rbac/clusterrole/strategy.go.
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import validate_rules
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata


def validate_cluster_role(doc: Tree) -> Errors:
    return _cluster_role(doc, lenient=False)


def validate_cluster_role_update(new: Tree, old: Tree) -> Errors:
    selectors = (old.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    lenient = any(any(labels.validate_selector(selector, "")) for selector in selectors)
    yield from _cluster_role(new, lenient=lenient)
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])


def _cluster_role(doc: Tree, *, lenient: bool) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], False, metadata.path_segment)
    yield from validate_rules(doc, namespaced=False)
    rule = doc.get("aggregationRule")
    if rule is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = rule.get("clusterRoleSelectors") or ()
    if not selectors:
        yield errors.required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        yield from labels.validate_selector(selector, f"{path}[{index}]", lenient_values=lenient)
        if labels.compile_selector(selector) is None:
            yield errors.invalid(f"{path}[{index}]", None, "invalid label selector.")


KIND = Kind(
    "rbac.authorization.k8s.io",
    "clusterroles",
    strategy=Strategy(
        namespaced=False,
        creates_on_update=True,
        check_create=validate_cluster_role,
        check_update=validate_cluster_role_update,
    ),
)
