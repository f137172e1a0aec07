"""Makes the pictures of reports in docs, with Chromium.

python -m tests.incidents.pictures
"""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

from kcm_cli.cli.plan_page import comparison_page, plan_page
from kcm_cli.plan import FailNode, Options, plan
from kcm_cli.plan.comparison import compare
from kcm_cli.report.page import TRACE, page
from kcm_cli.trace.text import LEGEND, document
from tests.incidents.replay import AUDITED, target, traced
from tests.kit.places import ROOT
from tests.unit.plan.clusters import lived, planned, settled

FOLDER = ROOT / "docs" / "pictures"
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")
FLAGS += ("--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update")
FLAGS += ("--disable-sync",)


def trace_page(name: str, source: str = AUDITED) -> str:
    """The page of a recorded incident."""
    found = document(traced(name, source), ["The audit log was recorded on Kubernetes v1.36."])
    return page(TRACE, f"Trace of {target(name).text}", {**found, "legend": LEGEND})


def node_fails_page() -> str:
    """The page of a node that fails."""
    return plan_page(plan(settled(), [FailNode("node-2")], Options(horizon_s=900.0)))


def compared_page() -> str:
    """The page of a plan beside a cluster in which others made changes, too."""
    return comparison_page(compare(planned(), lived()[3]))


def shot(html: str, picture: Path, *, size: str = "1100,900", dark: bool = False) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    assert chromium, "Chromium is not installed"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "report.html").write_text(html)
        words = [chromium, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={size}"]
        words += ["--blink-settings=preferredColorScheme=0"] if dark else []
        words += ["--virtual-time-budget=3000", f"--screenshot={picture}", f"file://{folder}/report.html"]
        subprocess.run(words, check=True, capture_output=True, timeout=120)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    shot(trace_page("scale-down"), FOLDER / "trace.png", size="1100,640")
    shot(node_fails_page(), FOLDER / "plan.png", size="1100,1400")
    shot(node_fails_page(), FOLDER / "plan-dark.png", size="1100,700", dark=True)
    shot(compared_page(), FOLDER / "compared.png", size="1100,1000")
    print(json.dumps(sorted(path.name for path in FOLDER.iterdir())))


if __name__ == "__main__":
    main()
