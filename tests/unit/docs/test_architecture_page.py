"""docs/architecture.md: the changes that it follows name existing files and functions."""

import ast
import re

import pytest

from tests.kit.places import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text()
CHANGES = dict(re.findall(r"^\*\*([a-z-]+)\*\*: .*\n\n((?:\d\. .*\n)+)", PAGE, re.MULTILINE))
MOST = 8


def names_in(file: str) -> set[str]:
    """The functions, classes, methods and constants that a file defines."""
    found: set[str] = set()
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.ClassDef):
            parts = (one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
            found |= {node.name, *(f"{node.name}.{one.name}" for one in parts)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_six_changes_are_followed() -> None:
    assert CHANGES.keys() == {
        "deployment",
        "job",
        "garbage-collector",
        "endpointslice",
        "persistentvolume-binder",
        "plan",
    }


@pytest.mark.parametrize("change", CHANGES)
def test_each_stop_is_in_the_file_that_it_names(change: str) -> None:
    stops = CHANGES[change].splitlines()
    assert len(stops) <= MOST
    for number, stop in enumerate(stops, 1):
        found = re.match(r"(\d)\. `([^`]+)` `([^`]+)` \S", stop)
        assert found is not None and int(found[1]) == number, stop
        assert (ROOT / found[2]).is_file(), stop
        assert found[3] in names_in(found[2]), stop


SHORTCUTS = re.findall(r"^\| `([a-z_.]+)`: .*\| `([a-z_/]+\.py)` \|", PAGE, re.MULTILINE)


def test_each_shortcut_is_in_a_module_and_has_a_test() -> None:
    assert len(SHORTCUTS) >= 12
    for module, test in SHORTCUTS:
        path = module.replace(".", "/")
        places = (f"kcm_cli/{path}", f"kcm_cli/controllers/{path}")
        assert any((ROOT / f"{place}.py").is_file() or (ROOT / place).is_dir() for place in places), module
        assert any((ROOT / "tests/unit" / under / test).is_file() for under in ("", "controllers")), test
