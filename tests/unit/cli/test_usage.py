"""Help as text."""

import importlib
import re

import pytest

from kcm_cli.cli import usage
from kcm_cli.cli.manager import help_text
from kcm_cli.cli.subcommands import SUBCOMMANDS
from kcm_cli.component import value_types
from kcm_cli.component.flagset import Flag, FlagSet
from kcm_cli.manager.options import flag_set

FLAGS = FlagSet(
    [
        Flag("yes", value_types.BOOL, False, "Say yes.", "First", shorthand="y"),
        Flag("rate", value_types.FLOAT32, 0.5, "How fast.", "First"),
        Flag("gone", value_types.BOOL, False, "", "First", hidden=True),
        Flag("names", value_types.STRINGS, ("a", "b"), "Who.", "Second"),
        Flag("path", value_types.STRING, "/x y", "Where.", "Second"),
        Flag("none", value_types.STRING, "", "What.", "Second"),
    ]
)

PLAIN = """
First flags:

  -y, --yes   Say yes.
      --rate float32   How fast. (default 0.5)

Second flags:

      --names strings   Who. (default [a,b])
      --path string   Where. (default "/x y")
      --none string   What."""

WRAPPED = """
First flags:

  -y, --yes
                Say yes.
      --rate float32
                How fast. (default 0.5)

Second flags:

      --names strings
                Who. (default [a,b])
      --path string
                Where. (default "/x y")
      --none string
                What."""


@pytest.mark.parametrize(("columns", "text"), [(0, PLAIN), (60, WRAPPED)], ids=["not wrapped", "wrapped"])
def test_sections(columns: int, text: str) -> None:
    assert "\n".join(usage.sections(FLAGS, columns)) == text


def test_titles_can_be_bold() -> None:
    assert "\x1b[1mFirst flags:\x1b[0m" in list(usage.sections(FLAGS, 80, bold=True))


@pytest.mark.parametrize("columns", [80, 132])
def test_lines_fit_the_terminal(columns: int) -> None:
    assert max(len(line) for line in help_text(columns).splitlines()) <= columns


def test_only_titles_and_names_are_longer_than_a_narrow_terminal() -> None:
    name = re.compile(r" *(?:-\w, )?\S+(?: [\w\[=\]]+)?")
    longer = [line for line in help_text(30).splitlines() if len(line) > 30 and line[-1] != ":"]
    assert [line for line in longer if not name.fullmatch(line)] == []


@pytest.mark.parametrize("columns", [0, 80])
def test_every_visible_flag_is_in_its_section(columns: int) -> None:
    section = ""
    found = []
    for line in help_text(columns).splitlines():
        section = line.removesuffix(" flags:") if line.endswith(" flags:") else section
        match = re.match(r"  (?:-\w, |    )--([\w-]+)", line)
        if match:
            found.append((section, match[1]))
    assert found == [(flag.section, flag.name) for flag in flag_set() if not flag.hidden]


@pytest.mark.parametrize("columns", [60, 80, 118])
@pytest.mark.parametrize(
    "command", [("sandbox", "nodes"), ("sandbox", "assets"), *((one.name,) for one in SUBCOMMANDS)]
)
def test_the_help_of_each_command_fits(
    command: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    module = importlib.import_module(next(one.module for one in SUBCOMMANDS if one.name == command[0]))
    assert module.main([*command[1:], "--help"]) == 0
    assert max(len(line) for line in capsys.readouterr().out.splitlines()) <= columns
