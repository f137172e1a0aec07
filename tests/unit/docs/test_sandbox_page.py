"""docs/sandbox.md lists the programs of containers that are simulated."""

import re

from kcm_cli.sandbox.programs.interpreter import BUILT_IN, PROGRAMS
from tests.kit.places import ROOT

COMMANDS = (ROOT / "docs" / "sandbox.md").read_text().partition("\n### Commands\n")[2].partition("\n### ")[0]
INTERPRETED, _, COUNTED = COMMANDS.partition("\nThis is what scripts need.")
NAME = re.compile(r"`([a-z0-9]+|\[)`")


def test_each_program_is_listed() -> None:
    assert PROGRAMS.keys() - set(NAME.findall(INTERPRETED)) == set()


def test_what_is_listed_is_a_program() -> None:
    rows = re.findall(r"^\| (?:files|text|system) \|.*", INTERPRETED, re.MULTILINE)
    assert len(rows) == 3
    listed = NAME.findall(re.sub(r"\([^)]*\)", "", "".join(rows)))
    assert set(listed) - PROGRAMS.keys() == set()


def test_what_is_said_not_to_be_interpreted_is_not() -> None:
    counts = re.findall(r"^\| `.*", COUNTED.partition("\nSome more")[0], re.MULTILINE)
    named = set(NAME.findall("".join(counts[-2:])))
    assert "cut" in named and "uptime" in named
    assert named & (PROGRAMS.keys() | BUILT_IN.keys()) == set()
