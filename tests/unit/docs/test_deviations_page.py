"""docs/deviations.md and docs/upstream-bugs.md: every row is complete and names an existing test, a bug its report."""

import ast
import re
from functools import cache

import pytest

from tests.kit.places import ROOT

TEST = re.compile(r"`([^`]+)`")
PAGES = {"deviations.md": 3, "upstream-bugs.md": 4}
"""The pages, and the number of their columns."""


def rows(page: str) -> list[list[str]]:
    """The rows of all tables with a column for the test."""
    found: list[list[str]] = []
    tested = False
    for line in (ROOT / "docs" / page).read_text().splitlines():
        if re.fullmatch(r"\|( --- \|)+", line):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            tested = False
        elif tested:
            found.append(cells)
        else:
            tested = cells[-1] == "test"
    return found


def exists(test: str) -> bool:
    """``path``: of a file with tests; ``path::name``: one of them."""
    path, _, name = test.partition("::")
    names = named_in(path)
    return name in names if name else bool(names)


@cache
def named_in(path: str) -> set[str]:
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.walk(ast.parse(file.read_text()))
    return {
        node.name
        for node in tree
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("page", "columns"), PAGES.items())
def test_every_row_names_an_existing_test(page: str, columns: int) -> None:
    missing = []
    for row in rows(page):
        assert len(row) == columns and all(row), row
        missing += [test for test in TEST.findall(row[-1]) or [row[-1]] if not exists(test)]
    assert rows(page)
    assert missing == []


def test_every_bug_names_its_report() -> None:
    """What differs without one is a deviation."""
    assert [row[0] for row in rows("upstream-bugs.md") if not re.search(r"#\d+", row[1])] == []
