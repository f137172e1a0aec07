"""Strategy of services.

Source: pkg/registry/core/service/strategy.go.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.service_families import drop_by_type
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import service


def _new(doc: Tree) -> None:
    doc["status"] = {"loadBalancer": {}}
    _drop_internal_policy(doc)


def _update(new: Tree, old: Tree) -> None:
    parts.keep_status(new, old)
    drop_by_type(new, old)
    _drop_internal_policy(new)


def _drop_internal_policy(doc: Tree) -> None:
    # upstream: pkg/registry/core/service/storage/storage.go#defaultOnReadInternalTrafficPolicy
    spec = doc["spec"]
    if spec.get("type") == "ExternalName" and not service.unknown_internal_policy(spec):
        spec.pop("internalTrafficPolicy", None)


SERVICE = Strategy(
    on_create=_new,
    on_update=_update,
    on_status=parts.status_update,
    check_create=service.validate_service,
    check_update=service.validate_service_update,
    check_status=service.validate_service_status,
    warn=service.service_warnings,
    warn_status=service.service_status_warnings,
    creates_on_update=True,
    returns_object_on_delete=True,
)
