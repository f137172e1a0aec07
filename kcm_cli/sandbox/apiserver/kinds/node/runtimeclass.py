"""RuntimeClass.

Source: pkg/apis/node/validation,
pkg/registry/node/runtimeclass/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.warnings.nodes import DEPRECATED
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, name_of
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, quantities, scheduling


def validate_runtime_class(doc: Tree) -> list[FieldError]:
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    handler, overhead, where = doc.get("handler", ""), doc.get("overhead"), doc.get("scheduling")
    if handler:
        found += errors.invalid_each("handler", handler, names.dns1123_label(handler))
    else:
        found.append(errors.required("handler"))
    if overhead is not None:
        limits = {"limits": overhead.get("podFixed") or {}}
        found += quantities.validate_container(limits, (), "overhead")
    if where is not None:
        found += labels.validate_labels(where.get("nodeSelector"), "scheduling.nodeSelector")
        found += _tolerations(where.get("tolerations") or [], "scheduling.tolerations")
    return found


def _tolerations(items: list[Tree], path: str) -> list[FieldError]:
    found = scheduling.validate_tolerations(items, path)
    seen: list[Tree] = []
    for index, item in enumerate(items):
        key = {field: value for field, value in item.items() if field != "tolerationSeconds"}
        if key in seen:
            found.append(errors.duplicate(f"{path}[{index}]", go_print.internal("v1.Toleration", item)))
        seen.append(key)
    return found


def validate_runtime_class_update(new: Tree, old: Tree) -> list[FieldError]:
    found = validate_runtime_class(new) + metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    return found + errors.fixed("handler", new.get("handler", ""), old.get("handler", ""))


def of_runtime_class(new: Tree, old: Tree | None) -> list[str]:
    """A RuntimeClass."""
    selector = (new.get("scheduling") or {}).get("nodeSelector") or {}
    return [f"scheduling.nodeSelector: {DEPRECATED[key]}" for key in sorted(selector) if key in DEPRECATED]


def _cells(doc: Tree, now: datetime) -> list[object]:
    return [name_of(doc), doc.get("handler", ""), created(doc, now)]


KIND = Kind(
    "node.k8s.io",
    "runtimeclasses",
    strategy=Strategy(
        namespaced=False,
        creates_on_update=True,
        needs_version_on_update=True,
        check_create=validate_runtime_class,
        check_update=validate_runtime_class_update,
        warn=of_runtime_class,
    ),
    table=Layout((NAME, Column("Handler"), AGE), _cells),
)
