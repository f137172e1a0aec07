"""Command lines of configs/systemd."""

import re

from tests.kit.places import ROOT

CONFIGS = ROOT / "configs"
GROUPS = ("workloads", "others")


def unit_flags(group: str = "") -> list[str]:
    """The unit's flags, with the environment of a group's drop-in."""
    text = (CONFIGS / "systemd" / "kcm.service").read_text()
    more = (CONFIGS / "systemd" / "groups" / f"{group}.conf").read_text() if group else ""
    variables = dict(re.findall(r'^Environment="?(KCM_\w+)=(.*?)"?$', text + more, re.MULTILINE))
    words = text.replace("\\\n", " ")
    line = next(line for line in words.splitlines() if line.startswith("ExecStart="))
    return re.sub(r"\$\{?(KCM_\w+)\}?", lambda found: variables[found[1]], line).split()[1:]
