"""The man pages: one for each command, with all of its flags, and valid as mandoc judges."""

import re
import shutil
import subprocess

import pytest

from kcm_cli.cli.subcommands import SUBCOMMANDS
from tests.generate.manual import Page, manual, pages
from tests.kit.places import ROOT

PAGES = {page.name: page for page in pages()}


def test_there_is_a_page_for_each_command() -> None:
    found = {path.name for path in (ROOT / "configs" / "man").iterdir()}
    assert {f"kcm-{one.name}.1" for one in SUBCOMMANDS} < found == {page.file.rpartition("/")[2] for page in pages()}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_every_flag_is_there_once(page: Page) -> None:
    tags = re.findall(r"^\.TP\n.*\\fB\\-\\-([\w\\-]+)\\fR", manual(page), re.MULTILINE)
    assert [tag.replace("\\", "") for tag in tags] == [flag.name for flag in page.flags if not flag.hidden]


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_no_section_comes_twice(page: Page) -> None:
    sections = re.findall(r"^\.S[HS] .*", manual(page), re.MULTILINE)
    assert len(sections) == len(set(sections))


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_mandoc_finds_only_that_there_is_no_date(page: Page) -> None:
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc here")
    done = subprocess.run(["mandoc", "-Tlint"], input=manual(page), capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if "missing date" not in line] == []


def test_no_character_is_markup() -> None:
    page = Page("kcm", "a 'b' \\n", ".x\n\nUsage:\n  kcm -v", PAGES["kcm top"].flags)
    text = manual(page)
    assert "a \\(aqb\\(aq \\en" in text
    assert "\n\\&.x\n" in text and "\nkcm \\-v\n" in text
