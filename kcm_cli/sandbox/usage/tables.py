"""Metrics as tables: the total usage of each object, and its window.

upstream: kubernetes-sigs/metrics-server pkg/api/table.go
"""

from collections.abc import Sequence
from datetime import datetime

from kcm_cli.machinery import quantity
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.tables.column import Column, layout
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.requests import CPU, MEMORY

NAMES = (CPU, MEMORY)
TABLE = layout(
    Column("Name", "Name of the resource", format="name"),
    *(Column(name, format="quantity") for name in NAMES),
    Column("Window", format="duration"),
    row=lambda doc, now: _cells(doc),
)


def table(docs: Sequence[Doc], now: datetime, version: str) -> Doc:
    """The table of these metrics."""
    rows = [{"cells": TABLE.cells(doc, now), "object": doc} for doc in docs]
    definitions = TABLE.definitions() if rows else []
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": {},
        "columnDefinitions": definitions,
        "rows": rows,
    }


def _cells(doc: Tree) -> list[object]:
    used = [container["usage"] for container in doc["containers"]] if "containers" in doc else [doc["usage"]]
    return [doc["metadata"]["name"], *(_sum(name, used) for name in NAMES), doc["window"]]


def _sum(name: str, used: Sequence[Tree]) -> str:
    total = quantity.parse("0")
    for figures in used:
        more = quantity.parse(figures[name])
        total = total + more if total else more
    return str(total)
