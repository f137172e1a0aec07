"""The pictures of terminals in docs are what kcm draws, fit their width, and need nothing from elsewhere."""

import re
from functools import cache
from importlib.metadata import version
from xml.etree import ElementTree

import pytest

from tests.generate.pictures import FOLDER, WIDTHS, pictures
from tests.kit.places import ROOT

RICH = re.findall(r"^rich==(\S+)", (ROOT / "configs" / "requirements.lock").read_text(), re.MULTILINE)
NAMES = [f"{what}-{width}.svg" for width in WIDTHS for what in ("top-go", "top-kcm", "sandbox")]


@cache
def drawn() -> dict[str, str]:
    return pictures()


@pytest.mark.skipif(version("rich") not in RICH, reason="another rich than the locked one draws")
@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_what_is_drawn_now(name: str) -> None:
    """Otherwise: python -m tests.generate.pictures."""
    assert (FOLDER / name).read_text() == drawn()[name]


def test_there_are_no_others() -> None:
    assert sorted(drawn()) == sorted(NAMES) == sorted(path.name for path in FOLDER.glob("*.svg"))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_picture_without_outside_parts(name: str) -> None:
    text = drawn()[name]
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"(?:url\((?!#)|href=|src=|@import)[^ ]*", text) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_it(name: str) -> None:
    page = "sandbox.md" if name.startswith("sandbox") else "top.md"
    assert f"](pictures/{name})" in (ROOT / "docs" / page).read_text()
