"""What the server keeps beside requests is written by one writer: ``Core.own``."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.places import ROOT

PLACE = ROOT / "kcm_cli" / "sandbox" / "apiserver"
CONTROLLERS = [*sorted((PLACE / "controllers").glob("*.py")), PLACE / "crd" / "controller.py"]
WRITES = {"create", "update", "delete"}


def writes(source: str) -> Iterator[str]:
    """The calls that write to a store: ``self._store.update``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WRITES:
            holder = ast.unparse(node.func.value)
            if holder.endswith("store"):
                yield f"{holder}.{node.func.attr}"


@pytest.mark.parametrize("path", CONTROLLERS, ids=lambda path: path.stem)
def test_a_controller_of_the_server_writes_by_its_one_writer(path: Path) -> None:
    assert list(writes(path.read_text())) == []


def test_a_write_would_be_found() -> None:
    assert list(writes("self._core.store.update(1)\nself._own.update(2)\nstore.get(3)")) == ["self._core.store.update"]
