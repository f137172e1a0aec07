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
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, quantities, scheduling


def validate_runtime_class(doc: Tree) -> Errors:
    yield from metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    handler, overhead, where = doc.get("handler", ""), doc.get("overhead"), doc.get("scheduling")
    if handler:
        yield from errors.invalid_each("handler", handler, names.dns1123_label(handler))
    else:
        yield errors.required("handler")
    if overhead is not None:
        limits = {"limits": overhead.get("podFixed") or {}}
        yield from quantities.validate_container(limits, (), "overhead")
    if where is not None:
        yield from labels.validate_labels(where.get("nodeSelector"), "scheduling.nodeSelector")
        yield from _tolerations(where.get("tolerations") or [], "scheduling.tolerations")


def _tolerations(items: list[Tree], path: str) -> Errors:
    yield from scheduling.validate_tolerations(items, path)
    seen: list[Tree] = []
    for index, item in enumerate(items):
        key = {field: value for field, value in item.items() if field != "tolerationSeconds"}
        if key in seen:
            yield errors.duplicate(f"{path}[{index}]", go_print.internal("v1.Toleration", item))
        seen.append(key)


def validate_runtime_class_update(new: Tree, old: Tree) -> Errors:
    yield from validate_runtime_class(new)
    yield from metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    yield from errors.fixed("handler", new.get("handler", ""), old.get("handler", ""))


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
