"""RoleBinding.

upstream: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation,
pkg/registry/rbac/rolebinding/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.rbac import common
from kcm_cli.sandbox.apiserver.kinds.rbac.common import binding_cells, binding_columns
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import BINDING, same_role
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.tables.column import Layout
from kcm_cli.sandbox.apiserver.validation import metadata

_ANY_ROLE = "reference a Role in the current namespace or a ClusterRole in the global namespace"


KIND = Kind(
    "rbac.authorization.k8s.io",
    "rolebindings",
    defaults=common.role_binding,
    strategy=Strategy(
        creates_on_update=True,
        names=metadata.path_segment,
        check=by(BINDING),
        check_change=same_role,
        update_steps=("name", "rules", "metadata", "change"),
    ),
    table=Layout(binding_columns("roleBinding", _ANY_ROLE), binding_cells),
)
