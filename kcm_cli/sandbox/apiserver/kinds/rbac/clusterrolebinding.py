"""ClusterRoleBinding.

upstream: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation,
pkg/registry/rbac/clusterrolebinding/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.rbac import common
from kcm_cli.sandbox.apiserver.kinds.rbac.common import binding_cells, binding_columns
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import CLUSTER_BINDING, same_role
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.validation import metadata

_CLUSTER_ROLE = "only reference a ClusterRole in the global namespace"


KIND = Kind(
    "rbac.authorization.k8s.io",
    "clusterrolebindings",
    defaults=common.role_binding,
    strategy=Strategy(
        creates_on_update=True,
        names=metadata.path_segment,
        check=by(CLUSTER_BINDING),
        check_change=same_role,
        update_steps=("name", "rules", "metadata", "change"),
    ),
    table=Layout(binding_columns("clusterRoleBinding", _CLUSTER_ROLE), binding_cells),
)
