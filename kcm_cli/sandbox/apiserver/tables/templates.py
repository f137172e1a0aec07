"""Columns and cells of pod templates, replicas and scales.

upstream: pkg/printers/internalversion/printers.go (v1.36)
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kcm_cli.machinery import labels
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Cell, Column, at, layout, number, of_field, wide
from kcm_cli.sandbox.apiserver.types import Tree

NONE = "<none>"


def containers(template: str, column: Callable[[str, str, Cell], Column] = wide) -> tuple[Column, Column]:
    """Columns with names and images of the containers in the template at a path."""
    found = at(f"{template}.spec.containers", ())

    def joined(field: str) -> Cell:
        return lambda doc, now: ",".join(one.get(field, "") for one in found(doc, now))

    return (
        column("Containers", "Names of each container in the template.", joined("name")),
        column("Images", "Images referenced by each container in the template.", joined("image")),
    )


def label_set(found: Mapping[str, str] | None) -> str:
    """``a=b,c=d``, or ``<none>``."""
    return labels.format_set(found) if found else NONE


def labels_at(path: str) -> Cell:
    """The labels at a path."""
    found = at(path, None)
    return lambda doc, now: label_set(found(doc, now))


def selector_text(selector: Tree | None) -> str:
    """A label selector as text."""
    return labels.format_label_selector(labels.read_label_selector(selector))


def selector_at(path: str) -> Cell:
    """The label selector at a path."""
    found = at(path, None)
    return lambda doc, now: selector_text(found(doc, now))


def replica_columns(kind: str, selector: Cell) -> tuple[Column, ...]:
    """The columns of ReplicaSets and ReplicationControllers."""
    return (
        NAME,
        number("Desired", *of_field(kind, "spec.replicas", 0)),
        number("Current", *of_field(kind, "status.replicas", 0)),
        number("Ready", *of_field(kind, "status.readyReplicas", 0)),
        AGE,
        *containers("spec.template"),
        wide("Selector", f"{kind}Spec.selector", selector),
    )


_DESIRED, _AVAILABLE = at("spec.replicas", 0), at("status.replicas", 0)
SCALE = layout(
    replace(NAME, format=""),
    number("Desired", "ScaleSpec.replicas", _DESIRED),
    number("Available", "ScaleStatus.replicas", _AVAILABLE),
    AGE,
)
CUSTOM_SCALE = layout(
    NAME,
    number("Desired", "Number of desired replicas", _DESIRED),
    number("Available", "Number of actual replicas", _AVAILABLE),
    replace(AGE, type="date"),
)
