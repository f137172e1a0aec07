"""ClusterRole.

upstream: pkg/apis/rbac/validation, pkg/registry/rbac/clusterrole/strategy.go
"""

from kcm_cli.sandbox.apiserver.kinds.rbac.rules import CLUSTER_RULES
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata, rules


def _check(doc: Tree, old: Tree | None) -> Errors:
    selectors = ((old or {}).get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    lenient = any(any(labels.validate_selector(selector, "")) for selector in selectors)
    yield from CLUSTER_RULES(doc, "")

    def selector(found: Tree, path: str) -> Errors:
        yield from labels.validate_selector(found, path, lenient_values=lenient)
        if labels.compile_selector(found) is None:
            yield errors.invalid(path, None, "invalid label selector.")

    detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
    rule = rules.fields(rules.required("clusterRoleSelectors", rules.items(selector), detail=detail))
    yield from rules.fields(rules.optional("aggregationRule", rule))(doc, "")


KIND = Kind(
    "rbac.authorization.k8s.io",
    "clusterroles",
    strategy=Strategy(
        creates_on_update=True,
        names=metadata.path_segment,
        check=_check,
        update_steps=("name", "rules", "metadata"),
    ),
)
