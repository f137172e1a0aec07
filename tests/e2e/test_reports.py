"""Reports in a real browser."""

import html as markup
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kcm_cli.report.page import COMPARISON, PLAN, TRACE, page
from tests.incidents.pictures import FLAGS, compared_page, node_fails_page, trace_page

CHROMIUM = shutil.which("chromium") or ""
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed")]
AXE = os.environ.get("AXE_CORE", "")
POLICY = re.compile(r"<meta http-equiv=.Content-Security-Policy.*?>")
CHECK = """(async () => {
  await new Promise((done) => setTimeout(done, 100));
  ACT;
  await new Promise((done) => setTimeout(done, 100));
  const found = await axe.run(document, { resultTypes: ["violations", "incomplete"] });
  const where = (rule) => rule.nodes.slice(0, 3).map((node) => node.html.slice(0, 200));
  const told = (rules) => rules.map((rule) => [rule.id, ...where(rule)]);
  const undecided = found.incomplete.filter((rule) => rule.id !== "color-contrast");  // of arrows, and text of pictures
  const wide = document.documentElement.scrollWidth - innerWidth;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const result = { wide, dark, passes: found.passes.length, found: [...told(found.violations), ...told(undecided)] };
  const place = top.document.createElement("pre");
  place.id = "result";
  place.textContent = JSON.stringify(result);
  top.document.body.append(place);
})()"""
FRAME = '<!DOCTYPE html><html style="color-scheme: light dark"><iframe style="width: {}px; height: 900px" srcdoc="{}">'
HOSTILE = '</script><img src="http://127.0.0.1:1/x" onerror="document.title=1"><script>document.title=1</script>\u202e'


def shown(html: str, folder: Path) -> str:
    """The document after the script has run. There is no way to anywhere."""
    found = dumped(html, folder)
    assert "data-ready" in found, found[-2000:]
    return re.sub(r"(?s)<script.*?</script>", "", found)


def dumped(html: str, folder: Path, *flags: str) -> str:
    (folder / "report.html").write_text(html)
    words = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder}/profile", "--host-resolver-rules=MAP * ~NOTFOUND"]
    words += ["--virtual-time-budget=5000", "--dump-dom", f"file://{folder}/report.html"]
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout


def assert_accessible(html: str, folder: Path, *, width: int = 1000, dark: bool = False, act: str = "") -> None:
    """axe-core finds nothing, and nothing is scrolled sideways. act: a script that is run before."""
    scripts = (Path(AXE).read_text(), CHECK.replace("ACT", act))
    own = "".join(f"<script>{script}</script>" for script in scripts)
    page = POLICY.sub("", html).replace("</body>", f"{own}</body>")
    flags = ["--blink-settings=preferredColorScheme=0"] if dark else []
    text = dumped(FRAME.format(width, markup.escape(page)), folder, *flags)
    told = re.search(r'(?s)<pre id="result">(.*?)</pre>', text)
    assert told is not None, text[-2000:]
    result = json.loads(markup.unescape(told[1]))
    assert result.pop("passes") > 15
    assert result == {"wide": 0, "dark": dark, "found": []}


def node(number: int, parent: int | None, text: str, edge: str = "known") -> dict[str, Any]:
    return {"number": number, "parent": parent, "edge": edge, "text": text, "at": 1e9 + number}


def trace(*nodes: dict[str, Any], head: str = "head") -> str:
    target = {"kind": "Pod", "namespace": "n", "name": head}
    document = {"target": target, "head": [head], "notes": [head], "legend": "", "nodes": list(nodes)}
    return page(TRACE, head, document)


def test_a_trace(tmp_path: Path) -> None:
    found = shown(trace_page("scale-down"), tmp_path)
    assert "was scaled by alice" in found and 'role="treeitem"' in found and "guess" in found


def test_a_plan(tmp_path: Path) -> None:
    found = shown(node_fails_page(), tmp_path)
    for part in ("fail node node-2", "Availability", "<svg", "lowest 2 of 3", "Not modelled", "StatefulSet sim/db"):
        assert part in found


def test_a_comparison(tmp_path: Path) -> None:
    found = shown(compared_page(), tmp_path)
    assert re.search('<h1 class="bad">Not as planned: 1 happened differently', found)  # the answer is first
    for part in ("Deployment sim/unplanned", "status.readyReplicas", "scale deploy/web to 6", "beside the cluster at"):
        assert part in found
    assert "Count" not in found.partition("Fields that are not as planned")[0]  # a column of ones


def compared(number: int) -> str:
    """A comparison with so many lines in each table."""
    about = {"kind": "Deployment", "namespace": "n", "name": HOSTILE}
    field = {"path": "spec.replicas", "state": "differently", "before": 3, "planned": 5, "found": 4}
    step = {"action": "changed", "about": about, "owner": "", "count": 1, "state": "differently", "detail": "why"}
    other = {"what": "created", "about": about, "owner": "", "count": 1, "by": "helm", "at": "2026-01-01T00:00:00Z"}
    ready = {"about": about, "state": "differently", "wanted": 3, "planned": 3, "lowest": 2, "final": 3, "found": 1}
    document = {"headline": "Plan beside", "verdict": "Not as planned", "good": False, "changes": [], "notes": ["note"]}
    lists = {"steps": {**step, "fields": [field]}, "unexpected": other, "availability": ready}
    return page(COMPARISON, "t", document | {name: [one] * number for name, one in lists.items()})


def test_a_comparison_of_hostile_names(tmp_path: Path) -> None:
    found = shown(compared(1), tmp_path)
    for part in ("Not as planned", "Fields that are not as planned", "spec.replicas", "Not planned", "helm", "note"):
        assert part in found
    assert "<img" not in found and "&lt;img" in found


def test_hostile_names_are_text(tmp_path: Path) -> None:
    found = shown(trace(node(0, None, HOSTILE), head=HOSTILE), tmp_path)
    assert "<img" not in found and "\u202e" not in found and "&lt;img" in found
    assert "<title>1</title>" not in found


def test_ten_thousand_pods_are_few_elements(tmp_path: Path) -> None:
    pods = [node(n, 0, f"Pod n/web-{n} was created", "inferred") for n in range(1, 10_001)]
    found = shown(trace(node(0, None, "Deployment n/web was created"), *pods), tmp_path)
    assert "of 10001 lines" in found and found.count("treeitem") < 200


def test_ten_thousand_differences_are_a_thousand_lines(tmp_path: Path) -> None:
    found = shown(compared(10_000), tmp_path)
    assert found.count("9000 more are in the file.") == 4 and found.count("<tr") == 4 * 1001


accessible = pytest.mark.skipif(not AXE, reason="AXE_CORE names no axe.min.js")
_EMPTY = """const find = document.getElementById("find");
find.value = "no line has this";
find.dispatchEvent(new Event("input"))"""
_BELOW = """const rows = document.querySelector("[role=tree]");
rows.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
rows.scrollTop = 100000"""
_REPORTS = {
    "trace": lambda: trace_page("flapping"),
    "plan": node_fails_page,
    "comparison": compared_page,
    "hostile names": lambda: compared(1),
}


@accessible
@pytest.mark.parametrize(("width", "dark"), [(1000, False), (320, True)])
@pytest.mark.parametrize("report", _REPORTS)
def test_accessible(tmp_path: Path, report: str, width: int, dark: bool) -> None:
    assert_accessible(_REPORTS[report](), tmp_path, width=width, dark=dark)


@accessible
@pytest.mark.parametrize("act", [_EMPTY, _BELOW])
def test_a_tree_is_accessible_without_lines_and_without_the_active_one(tmp_path: Path, act: str) -> None:
    pods = [node(n, 0, f"Pod n/web-{n} was created", "inferred") for n in range(1, 10_001)]
    assert_accessible(trace(node(0, None, "Deployment n/web was created"), *pods), tmp_path, act=act)


def test_what_cannot_be_shown_is_told(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="This report cannot be shown"):
        shown(page(PLAN, "t", {}), tmp_path)
