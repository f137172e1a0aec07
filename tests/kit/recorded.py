"""Runs the recorded scenarios and cases against a server, and compares with the gaps that are known."""

import re
import subprocess
import sys
from pathlib import Path

from tests.kit.places import GOLDEN, ROOT

GAPS = ROOT / "tests" / "e2e" / "gaps"
GOLDEN_FLAGS = (
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=8s",
    "--node-startup-grace-period=8s",
    "--node-eviction-rate=10",
    "--secondary-node-eviction-rate=10",
    "--pvclaimbinder-sync-period=2s",
    "--resource-quota-sync-period=10s",
    "--namespace-sync-period=10s",
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--kube-api-qps=5000",
    "--kube-api-burst=10000",
)


def run(kit: Path, url: str, token: str, *options: str) -> tuple[set[str], set[str], str]:
    """The names that passed, the names that failed, and all that was printed."""
    command = [sys.executable, "run.py", "--server", url, "--token", token, "--insecure", *options, "check", "."]
    done = subprocess.run(command, cwd=kit, capture_output=True, text=True, timeout=900, check=False)
    passed = set(re.findall(r"^OK (\S+)", done.stdout, re.M))
    failed = set(re.findall(r"^FAILED (\S+)", done.stdout, re.M))
    assert passed or failed, done.stdout + done.stderr
    last = f"{len(passed)} passed, {len(failed)} failed"
    assert done.stdout.splitlines()[-1] == last, f"it did not run to its end:\n{done.stdout[-20000:]}{done.stderr}"
    assert done.returncode == (1 if failed else 0), done.stderr
    return passed, failed, done.stdout


def known(name: str) -> set[str]:
    lines = (GAPS / f"{name}.txt").read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def judge(passed: set[str], failed: set[str], gaps: set[str], text: str) -> None:
    assert gaps <= passed | failed, f"{sorted(gaps - passed - failed)} did not run: take them out of the list"
    assert not failed - gaps, f"{sorted(failed - gaps)} failed:\n{text[-20000:]}"
    assert not passed & gaps, f"{sorted(passed & gaps)} hold now: take them out of the list"


def with_patience(url: str, token: str, jobs: int) -> tuple[set[str], set[str], str]:
    """All scenarios. What fails among others is tried again alone: a busy machine is no difference in behaviour.

    First with the same patience, which also stretches how long nothing may change before a look: a Job that lives for
    three seconds is gone when it is looked at with more.
    """
    passed, failed, text = run(GOLDEN, url, token, "--jobs", str(jobs), "--patience", "2")
    gaps = known("golden")
    for patience in ("2", "6"):
        if slow := failed - gaps:
            print(text)
            again = tuple(word for name in sorted(slow) for word in ("--only", name))
            better, failed, text = run(GOLDEN, url, token, *again, "--jobs", "1", "--patience", patience)
            passed |= better
            failed |= gaps - passed
    return passed, failed, text
