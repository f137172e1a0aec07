"""A system without what only Linux has. ``make types`` checks the names for macOS, too."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes import Processes, ask, free_port, until

pytestmark = pytest.mark.e2e
KCM = (sys.executable, "-m", "tests.kit.elsewhere")
TOKEN = "tok"


def test_a_sandbox_with_its_manager_and_a_plan_run_there(tmp_path: Path) -> None:
    port, config, log = free_port(), tmp_path / "kubeconfig", tmp_path / "log"
    url = f"https://127.0.0.1:{port}"
    words = ("sandbox", "--port", str(port), "--no-view", "--nodes", "1", "--token", TOKEN, "--kubeconfig", str(config))
    with Processes() as processes:
        processes.start(*KCM, *words, log=log)
        until(lambda: ask(f"{url}/readyz", token=TOKEN).status == 200, why=log.read_text)
        accounts = f"{url}/api/v1/namespaces/default/serviceaccounts/default"
        until(lambda: ask(accounts, token=TOKEN).status == 200, why=log.read_text)  # by the manager
        done = subprocess.run(
            (*KCM, "plan", f"--kubeconfig={config}", "--drain", "node-1"), capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "node-1" in done.stdout
    assert "Traceback" not in log.read_text()
