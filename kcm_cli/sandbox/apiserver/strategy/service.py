"""Strategy of services.

Source: pkg/registry/core/service/strategy.go.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import metadata


def _new(doc: Tree) -> None:
    doc["status"] = {"loadBalancer": {}}


def _check(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], True, metadata.label)


def _check_update(new: Tree, old: Tree) -> list[FieldError]:
    return metadata.validate_meta_update(new["metadata"], old["metadata"])


SERVICE = Strategy(
    on_create=_new,
    on_update=parts.keep_status,
    on_status=parts.status_update,
    check_create=_check,
    check_update=_check_update,
    check_status=_check_update,
    creates_on_update=True,
    returns_object_on_delete=True,
)
