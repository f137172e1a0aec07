"""What a hostile run says about its manager."""

import subprocess
from pathlib import Path

from tests.hostile.run import LAST_LINES, Manager


def test_of_a_manager_that_has_ended_it_shows_how(tmp_path: Path) -> None:
    log = tmp_path / "kcm.log"
    log.write_text("".join(f"line {number}\n" for number in range(LAST_LINES + 1)))
    process = subprocess.Popen(["sh", "-c", "exit 3"])
    process.wait()
    told = Manager(process, 1, log).ended()
    assert told.startswith("kcm has ended, exit code 3:\n  line 1\n")
    assert told.endswith(f"\n  line {LAST_LINES}")
