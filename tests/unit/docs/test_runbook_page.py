"""docs/runbook.md has a section for each alert, and names flags that exist."""

import re

import yaml

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
