"""The registry is a loop over what kinds declare: it names none of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from tests.kit.places import ROOT

PLACE = ROOT / "kcm_cli" / "sandbox" / "apiserver" / "registry"
GENERIC = {"Scale"}
"""What each kind may have: the object of its subresource scale."""


def names() -> set[str]:
    """Plurals and kinds."""
    served = list(Catalog(KINDS))
    return ({one.info.gvr.plural for one in served} | {one.info.kind for one in served}) - GENERIC


def texts(source: str) -> Iterator[str]:
    """The parts of the strings of a module, such as ``apps`` and ``deployments`` of ``deployments.apps``."""
    tree = ast.parse(source)
    explained = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained:
            yield from node.value.replace(".", "/").split("/")


@pytest.mark.parametrize("path", sorted(PLACE.glob("*.py")), ids=lambda path: path.stem)
def test_a_module_of_the_registry_names_no_kind(path: Path) -> None:
    assert names().isdisjoint(texts(path.read_text()))


def test_a_name_would_be_found() -> None:
    assert {"pods", "deployments", "Namespace"} <= names()
    assert list(texts('"""pods"""\nif plural == "deployments.apps":\n    """Pods."""\n')) == ["deployments", "apps"]
