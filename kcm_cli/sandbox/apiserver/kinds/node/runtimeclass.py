"""RuntimeClass.

upstream: pkg/apis/node/validation,
pkg/registry/node/runtimeclass/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by
from kcm_cli.sandbox.apiserver.strategy.warnings.nodes import DEPRECATED
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, quantities, rules, scheduling


def _tolerations(items: list[Tree], path: str) -> Errors:
    yield from scheduling.validate_tolerations(items, path)
    seen: set[frozenset[tuple[str, object]]] = set()
    for index, item in enumerate(items):
        if (key := scheduling.without_seconds(item)) in seen:
            yield errors.duplicate(f"{path}[{index}]", go_print.internal("v1.Toleration", item))
        seen.add(key)


def _overhead(overhead: Tree, path: str) -> Errors:
    return quantities.validate_container({"limits": overhead.get("podFixed") or {}}, (), path)


_SCHEDULING = rules.fields(
    rules.optional("nodeSelector", labels.validate_labels), rules.optional("tolerations", _tolerations)
)
_CLASS = rules.fields(
    rules.required("handler", rules.LABEL),
    rules.optional("overhead", _overhead),
    rules.optional("scheduling", _SCHEDULING),
)


def of_runtime_class(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a RuntimeClass."""
    selector = (new.get("scheduling") or {}).get("nodeSelector") or {}
    return [f"scheduling.nodeSelector: {DEPRECATED[key]}" for key in sorted(selector) if key in DEPRECATED]


KIND = Kind(
    "node.k8s.io",
    "runtimeclasses",
    strategy=Strategy(
        creates_on_update=True,
        needs_version_on_update=True,
        core_finalizers=False,
        check=by(_CLASS),
        check_change=lambda new, old: errors.fixed("handler", new.get("handler", ""), old.get("handler", "")),
        update_steps=("name", "rules", "metadata", "change"),
        warn=of_runtime_class,
    ),
    table=layout(NAME, Column("Handler", "", at("handler")), AGE),
)
