"""ServiceAccount.

upstream: pkg/apis/core/validation,
pkg/registry/core/serviceaccount/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.api.well_known import ENFORCE_MOUNTABLE_SECRETS
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, layout
from kcm_cli.sandbox.apiserver.types import Tree


def _new_service_account(doc: Tree) -> None:
    for secret in doc.get("secrets") or ():
        for field in tuple(secret):
            if field != "name":
                del secret[field]


def _service_account_update(new: Tree, old: Tree) -> None:
    _new_service_account(new)


def _warn_service_account(new: Tree, old: Tree | None) -> list[str]:
    if old is not None and ENFORCE_MOUNTABLE_SECRETS in (old["metadata"].get("annotations") or {}):
        return []
    if ENFORCE_MOUNTABLE_SECRETS not in (new["metadata"].get("annotations") or {}):
        return []
    advice = "prefer separate namespaces to isolate access to mounted secrets"
    return [f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; {advice}"]


KIND = Kind(
    "",
    "serviceaccounts",
    strategy=Strategy(
        on_create=_new_service_account,
        on_update=_service_account_update,
        update_steps=("metadata", "name"),
        warn=_warn_service_account,
        returns_object_on_delete=True,
    ),
    table=layout(NAME, AGE),
)
