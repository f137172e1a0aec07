"""ClusterRoleBinding.

upstream: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation,
pkg/registry/rbac/clusterrolebinding/strategy.go, pkg/printers/internalversion/printers.go
"""

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.kinds.rbac import common
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import CLUSTER_BINDING
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import by

_CLUSTER_ROLE = "only reference a ClusterRole in the global namespace"


KIND = Kind(
    "rbac.authorization.k8s.io",
    "clusterrolebindings",
    defaults=common.role_binding,
    strategy=replace(common.BINDING, check=by(CLUSTER_BINDING)),
    table=common.binding_table("clusterRoleBinding", _CLUSTER_ROLE),
)
