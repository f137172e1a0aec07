"""The launcher of upstream's tests, as a process on a sandbox."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.places import ROOT
from tests.kit.processes import free_port

pytestmark = pytest.mark.e2e


def test_the_launcher_reports_its_caches_and_ends_with_standard_input(start_sandbox: Callable[..., Any]) -> None:
    sandbox = start_sandbox("--no-manager")
    words = [sys.executable, str(ROOT / "tests" / "upstream" / "launcher.py"), "--controllers=ttl-controller"]
    words += ["--leader-elect=false", f"--secure-port={free_port()}", f"--kubeconfig={sandbox.kubeconfig}"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, text=True, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            lines = [process.stdout.readline().strip()]
            while lines[-1] not in ("READY", ""):
                lines.append(process.stdout.readline().strip())
            assert lines[-2:] == ["SYNCED 1", "READY"]
            process.stdin.write("3600\n")
            process.stdin.close()
            assert process.wait(10) == 9
        finally:
            process.kill()


def test_without_binaries_the_make_target_reports_it() -> None:
    words = [sys.executable, "-m", "tests.upstream.run", "job"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env={"PATH": ""})
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert "UPSTREAM_TESTS" in done.stdout
