"""Generated documents are current and correct."""

import sys
from pathlib import Path

import pytest

from kcm_cli.component import configfile, options
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.options import ComponentConfig, flag_set
from tests.generate.config_sample import sample
from tests.generate.docs import DOCUMENTS, flags_document, main

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_is_current(name: str) -> None:
    if name == "docs/api.md" and sys.version_info >= (3, 14):
        pytest.skip("this Python writes unions in signatures otherwise")
    assert (ROOT / name).read_text() == DOCUMENTS[name](), "run make docs"


def test_check_notices_a_stale_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--check"]) == 1
    assert main([]) == 0
    assert main(["--check"]) == 0
    (tmp_path / "docs/flags.md").write_text("old")
    assert main(["--check"]) == 1


def test_the_sample_has_every_field_with_its_default() -> None:
    values = configfile.parse(sample(), COMPONENT_CONFIG, ComponentConfig)
    assert options.build(ComponentConfig, values) == ComponentConfig()
    named = [key[-1] for key, _ in options.layout(ComponentConfig)]
    assert all(f"{name}:" in sample() for name in named)


def test_every_flag_is_documented() -> None:
    text = flags_document()
    assert all(f"`--{flag.name}`" in text for flag in flag_set())


def test_lines_of_the_sample_are_short() -> None:
    assert max(map(len, sample().splitlines())) <= 120
