"""Role.

Source: pkg/apis/rbac/validation, pkg/registry/rbac/role/strategy.go.
"""

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import validate_rules
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import metadata


def validate_role(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.path_segment)
    yield from validate_rules(doc, namespaced=True)


def validate_role_update(new: Tree, old: Tree) -> Errors:
    return [*validate_role(new), *metadata.validate_meta_update(new["metadata"], old["metadata"])]


KIND = Kind(
    "rbac.authorization.k8s.io",
    "roles",
    strategy=Strategy(
        creates_on_update=True,
        check_create=validate_role,
        check_update=validate_role_update,
    ),
)
