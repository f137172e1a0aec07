"""The site builds without a warning, and its pages load nothing from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.places import ROOT

LOADS = re.compile(r"""<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^"'\s>]+""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = (sys.executable, "-m", "mkdocs", "build", "-q", "-f", "configs/site/mkdocs.yml", "-d", str(folder))
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_each_page_of_docs_is_a_page(site: Path) -> None:
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} <= {path.stem for path in site.glob("*.html")}
    assert "Two commands to begin with" in (site / "index.html").read_text()


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 20
    assert [(page.name, found) for page in pages for found in LOADS.findall(page.read_text())] == []
