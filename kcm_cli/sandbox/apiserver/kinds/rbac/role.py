"""Role.

upstream: pkg/apis/rbac/validation, pkg/registry/rbac/role/strategy.go
"""

from kcm_cli.sandbox.apiserver.kinds.rbac.rules import RULES
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.validation import metadata

KIND = Kind(
    "rbac.authorization.k8s.io",
    "roles",
    strategy=Strategy(
        creates_on_update=True,
        names=metadata.path_segment,
        check=by(RULES),
        update_steps=("name", "rules", "metadata"),
    ),
)
