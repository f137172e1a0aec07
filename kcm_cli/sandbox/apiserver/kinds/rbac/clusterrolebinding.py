"""ClusterRoleBinding.

Source: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation,
pkg/registry/rbac/clusterrolebinding/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.rbac import common
from kcm_cli.sandbox.apiserver.kinds.rbac.common import binding_cells, binding_columns
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import validate_binding, validate_binding_update
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.types import Errors, Tree


def validate_cluster_role_binding(doc: Tree) -> Errors:
    return validate_binding(doc, namespaced=False)


def validate_cluster_role_binding_update(new: Tree, old: Tree) -> Errors:
    return validate_binding_update(new, old, namespaced=False)


_CLUSTER_ROLE = "only reference a ClusterRole in the global namespace"


KIND = Kind(
    "rbac.authorization.k8s.io",
    "clusterrolebindings",
    defaults=common.role_binding,
    strategy=Strategy(
        namespaced=False,
        creates_on_update=True,
        check_create=validate_cluster_role_binding,
        check_update=validate_cluster_role_binding_update,
    ),
    table=Layout(binding_columns("clusterRoleBinding", _CLUSTER_ROLE), binding_cells),
)
