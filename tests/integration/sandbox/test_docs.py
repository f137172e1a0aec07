"""The unchanged examples of the pages about tests, each run by a pytest of its own in a folder of its own."""

import re
import shutil
from pathlib import Path

import pytest

from tests.kit.forked import run_pytest
from tests.kit.places import ROOT

TEXT = "".join((ROOT / "docs" / page).read_text() for page in ("testing-operators.md", "perturbation.md"))
FILE = re.compile(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall(TEXT))


def test_the_pages_have_their_examples() -> None:
    assert {"test_rollout.py", "crds/greetings.yaml", "conftest.py", "test_copies.py"} <= FILES.keys()
    assert TEXT.count("\n# test_") == sum(name.startswith("test_") for name in FILES)


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("test_")])
def test_an_example_passes_alone(tmp_path: Path, name: str) -> None:
    """In a process of its own: nothing that an earlier example has made or learned helps it."""
    if ".kubectl(" in FILES[name] and not shutil.which("kubectl"):
        pytest.skip("no kubectl here")
    for file, text in FILES.items():
        if file == name or not file.startswith("test_"):
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_text(text)
    code, output = run_pytest(tmp_path, "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider")
    tests = FILES[name].count("\ndef test_") + FILES[name].count("\nasync def test_")
    assert code == 0, output
    assert f"{tests} passed" in output
