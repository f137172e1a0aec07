"""The unchanged examples of docs/testing-operators.md, run by a separate pytest in a separate folder."""

import re
import subprocess
import sys
from pathlib import Path

from tests.places import ROOT

PAGE = ROOT / "docs" / "testing-operators.md"
FILE = re.compile(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall(PAGE.read_text()))


def test_the_page_has_its_examples() -> None:
    assert {"test_rollout.py", "greeting_operator.py", "crds/greetings.yaml", "conftest.py"} <= FILES.keys()
    assert PAGE.read_text().count("\n# test_") == sum(name.startswith("test_") for name in FILES)


def test_the_examples_pass(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    tests = sum(text.count("\ndef test_") + text.count("\nasync def test_") for text in FILES.values())
    assert done.returncode == 0, done.stdout
    assert f"{tests} passed" in done.stdout
