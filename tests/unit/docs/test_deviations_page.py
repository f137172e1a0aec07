"""docs/deviations.md: every row has a reason, and an existing test."""

import ast
import re

from tests.places import ROOT

TEST = re.compile(r"`([^`]+)`")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "deviations.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| difference ", "| ---"))
]


def exists(test: str) -> bool:
    """``path``: of a file with tests; ``path::name``: one of them."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    tree = ast.walk(ast.parse(file.read_text()))
    names = {node.name for node in tree if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    return name in names if name else bool(names)


def test_every_deviation_names_an_existing_test() -> None:
    missing = []
    for row in ROWS:
        assert len(row) == 3 and all(row), row
        missing += [test for test in TEST.findall(row[2]) or [row[2]] if not exists(test)]
    assert ROWS
    assert missing == []
