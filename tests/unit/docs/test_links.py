"""The pages and the README: their links lead somewhere, and no merge left its marks.

Links to other sites are not followed, as tests need no network.
"""

import re
from pathlib import Path

import pytest

from tests.kit.places import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_MARK = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The names of the page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> list[str]:
    found = []
    for target in _LINK.findall(re.sub(r"`[^`\n]*`", "", page.read_text())):
        path, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        other = (page.parent / path).resolve() if path else page
        if not other.exists() or (anchor and other.suffix == ".md" and anchor not in anchors(other)):
            found.append(target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_merge_left_its_marks(page: Path) -> None:
    assert not _MARK.search(page.read_text())
