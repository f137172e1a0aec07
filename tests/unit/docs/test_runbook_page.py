"""docs/runbook.md has a section for each alert, and names flags and paths that exist."""

import asyncio
import re

import yaml

from kcm_cli.component.clock import LoopClock
from kcm_cli.manager.config import load
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.pages import pages
from tests.kit.places import ROOT

PAGE = (ROOT / "docs" / "runbook.md").read_text()
ALERTS = ROOT / "configs" / "prometheus" / "alerts.yaml"
FLAGS = (ROOT / "docs" / "flags.md", ROOT / "docs" / "plan.md", ROOT / "docs" / "top.md", ROOT / "docs" / "trace.md")
OTHERS = {"--field-selector", "--name"}
"""Of kubectl and crictl."""


def test_each_alert_has_its_section() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    assert re.findall(r"^### (Kcm\w+)$", PAGE, re.MULTILINE) == [
        rule["alert"] for one in groups for rule in one["rules"]
    ]


def test_flags_exist() -> None:
    known = set(re.findall(r"--[a-z][a-z-]*[a-z]", "".join(page.read_text() for page in FLAGS)))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", PAGE))
    assert named - known - OTHERS - {"--concurrent"} == set()
    assert any(flag.startswith("--concurrent-") for flag in known)


async def test_paths_of_the_port_exist() -> None:
    loop = asyncio.get_running_loop()
    served = pages(Observability(load([]), LoopClock()), loop, lambda: loop)
    named = set(re.findall(r"(?:127\.0\.0\.1:10257|`)(/(?:healthz|debug|metrics)[\w/]*)", PAGE))
    assert len(named) > 2
    assert {path for path in named if served.find(path) is None} == set()
