"""The unchanged examples of the pages about tests, run by a separate pytest in a separate folder."""

import re
import subprocess
import sys
from pathlib import Path

from tests.places import ROOT

TEXT = "".join((ROOT / "docs" / page).read_text() for page in ("testing-operators.md", "perturbation.md"))
FILE = re.compile(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall(TEXT))


def test_the_pages_have_their_examples() -> None:
    assert {"test_rollout.py", "crds/greetings.yaml", "conftest.py", "test_copies.py"} <= FILES.keys()
    assert TEXT.count("\n# test_") == sum(name.startswith("test_") for name in FILES)


def test_the_examples_pass(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    tests = sum(text.count("\ndef test_") + text.count("\nasync def test_") for text in FILES.values())
    assert done.returncode == 0, done.stdout
    assert f"{tests} passed" in done.stdout
