"""The data directory of a process that is killed at any moment."""

import re
import subprocess
import sys
from pathlib import Path

from tests.kit.places import ROOT


def test_200_kills_lose_no_acknowledged_write(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.sandbox.killing", str(tmp_path), "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"200 kills, (\d+) acknowledged writes, \d+ that were kept without\n", done.stdout)
    assert found is not None
    assert int(found[1]) > 200
