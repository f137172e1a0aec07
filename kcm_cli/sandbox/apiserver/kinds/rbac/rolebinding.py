"""RoleBinding.

upstream: pkg/apis/rbac/v1/defaults.go, pkg/apis/rbac/validation,
pkg/registry/rbac/rolebinding/strategy.go, pkg/printers/internalversion/printers.go
"""

from msgspec.structs import replace

from kcm_cli.sandbox.apiserver.kinds.rbac import common
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import BINDING
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import by

_ANY_ROLE = "reference a Role in the current namespace or a ClusterRole in the global namespace"


KIND = Kind(
    "rbac.authorization.k8s.io",
    "rolebindings",
    defaults=common.role_binding,
    strategy=replace(common.BINDING, check=by(BINDING)),
    table=common.binding_table("roleBinding", _ANY_ROLE),
)
