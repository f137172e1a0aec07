"""Columns: their values, and the sources of their descriptions."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.tables.column import at, count, descriptions, of_field

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("doc", "shown"),
    [
        ({"spec": {"holder": "a"}}, "a"),
        ({"spec": {"holder": ""}}, "nobody"),
        ({"spec": {}}, "nobody"),
        ({"spec": None}, "nobody"),
        ({}, "nobody"),
    ],
)
def test_values_at_paths_or_a_default(doc: dict[str, Any], shown: str) -> None:
    assert at("spec.holder", "nobody")(doc, NOW) == shown


def test_counts_of_items() -> None:
    assert count("status.active")({"status": {"active": [{}, {}]}}, NOW) == 2
    assert count("status.active")({}, NOW) == 0


@pytest.mark.parametrize(
    ("kind", "path", "about"),
    [
        ("Lease", "spec.holderIdentity", "LeaseSpec.holderIdentity"),
        ("PersistentVolume", "spec.capacity.storage", "PersistentVolumeSpec.capacity"),
        ("Secret", "type", "Secret.type"),
    ],
)
def test_a_field_is_described_by_its_schema(kind: str, path: str, about: str) -> None:
    assert of_field(kind, path)[0] == about
    assert about in descriptions()


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: f"{kind.resource}.{kind.group}")
def test_a_bookmark_has_a_row(kind: Kind) -> None:
    """It is an object of the kind with only a resourceVersion."""
    cells = kind.table.cells({"metadata": {"name": "", "resourceVersion": "5", "creationTimestamp": None}}, NOW)
    assert len(cells) >= len(kind.table.columns)
