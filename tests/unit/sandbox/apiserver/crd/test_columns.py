"""Columns that a CustomResourceDefinition declares."""

from datetime import UTC, datetime

import pytest

from kcm_cli.sandbox.apiserver.crd.columns import layout_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def column(path: str) -> dict[str, object]:
    return {"name": path, "type": "integer", "jsonPath": path}


@pytest.mark.parametrize(
    ("paths", "cells"),
    [
        ([".a", ".b"], ["x", 1, 2]),
        ([".a", "..*", ".b"], ["x", 1]),
        ([".a b", ".b"], ["x"]),
        ([".list[::0]", ".b"], ["x", None, 2]),
    ],
)
def test_columns_end_before_the_first_that_cannot_be_read(paths: list[str], cells: list[object]) -> None:
    doc = {"metadata": {"name": "x"}, "a": 1, "b": 2, "list": [1]}
    assert layout_of([column(path) for path in paths]).cells(doc, NOW) == cells
