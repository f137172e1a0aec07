"""Columns and cells of pod templates, replicas and scales.

upstream: pkg/printers/internalversion/printers.go (v1.36)
"""

from datetime import datetime

from kcm_cli.machinery import codec, labels
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, number, wide
from kcm_cli.sandbox.apiserver.types import Tree

CONTAINERS = wide("Containers", "Names of each container in the template.")
IMAGES = wide("Images", "Images referenced by each container in the template.")
NONE = "<none>"


def containers(template: Tree | None) -> list[object]:
    """Names and images of a template's containers."""
    found = ((template or {}).get("spec") or {}).get("containers") or ()
    return [",".join(one["name"] for one in found), ",".join(one.get("image", "") for one in found)]


def label_set(found: dict[str, str] | None) -> str:
    """``a=b,c=d``, or a word for nothing."""
    return labels.format_set(found) if found else NONE


def selector_text(selector: Tree | None) -> str:
    """A label selector as text."""
    parsed = None if selector is None else codec.decode(codec.encode(selector), labels.LabelSelector)
    return labels.format_label_selector(parsed)


def replicas_cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    counts = [spec.get("replicas") or 0, status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [doc["metadata"]["name"], *counts, created(doc, now), *containers(spec.get("template"))]


def replica_columns(kind: str) -> tuple[Column, ...]:
    spec, status = f"{kind}Spec", f"{kind}Status"
    return (
        NAME,
        number("Desired", f"{spec}.replicas"),
        number("Current", f"{status}.replicas"),
        number("Ready", f"{status}.readyReplicas"),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", f"{spec}.selector"),
    )


def scale_cells(doc: Tree, now: datetime) -> list[object]:
    """The cells of a Scale."""
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    return [doc["metadata"]["name"], spec.get("replicas", 0), status.get("replicas", 0), created(doc, now)]


SCALE = Layout(
    (
        Column("Name", "ObjectMeta.name"),
        number("Desired", "ScaleSpec.replicas"),
        number("Available", "ScaleStatus.replicas"),
        AGE,
    ),
    scale_cells,
)

CUSTOM_SCALE = Layout(
    (
        NAME,
        number("Desired", "Number of desired replicas"),
        number("Available", "Number of actual replicas"),
        Column("Age", "ObjectMeta.creationTimestamp", "date"),
    ),
    scale_cells,
)
