"""Tests are found by their path: ``tests/unit`` mirrors ``kcm_cli``.

What ``kcm_cli/a/b/c.py`` does is tested in ``tests/unit/a/b/test_c.py``, or with its neighbours in another file of
that folder, or, for a room inside of a part (the ``plan`` of a controller), in the folder above.
"""

from collections.abc import Iterable
from pathlib import PurePath

import pytest

from tests.kit.places import ROOT

PACKAGE, TESTS = ROOT / "kcm_cli", ROOT / "tests" / "unit"
ROOMS = ("controllers/*/*", "sandbox/apiserver/*/*")
ELSEWHERE = {
    "sandbox/apiserver/discovery": "tests/recorded/apicases, and unit/sandbox/apiserver/routing/test_paths.py",
    "testing/perturb": "tests/perturb",
    "sandbox/assets": "tests/e2e/test_assets.py",
}
"""Folders without tests of their own, and who tests them."""
OF_NO_PACKAGE = {"upstream": "tests/upstream", "configs": "configs", "docs": "docs", "sandbox/fuzz": "the whole server"}
"""Folders of tests that mirror no package, and what they test."""


def packages() -> list[str]:
    folders = {path.parent for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"} - {PACKAGE}
    return sorted(folder.relative_to(PACKAGE).as_posix() for folder in folders)


def matches(package: str, patterns: Iterable[str]) -> bool:
    return any(PurePath(package).match(pattern) for pattern in patterns)


def has_tests(package: str) -> bool:
    places = [package]
    if matches(package, ROOMS):
        places.append(PurePath(package).parent.as_posix())
    return any(found for place in places for found in (TESTS / place).glob("test_*.py"))


@pytest.mark.parametrize("package", packages())
def test_a_package_has_tests_at_its_path(package: str) -> None:
    assert has_tests(package) != matches(package, ELSEWHERE), (
        "with tests, it is no exception any more; without, it is one"
    )


def test_a_folder_of_modules_is_a_package() -> None:
    lacking = [package for package in packages() if not (PACKAGE / package / "__init__.py").is_file()]
    assert not lacking, "add an empty __init__.py: kinds and controllers are not found without it"


def test_each_folder_of_tests_mirrors_a_package() -> None:
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert {name for name in folders if not (PACKAGE / name).is_dir()} == OF_NO_PACKAGE.keys()
