"""The plugin in a separate pytest: reports of failed tests, and cleanup."""

import os
import subprocess
import sys
from pathlib import Path

FAILING = """
import logging
import threading
import kubernetes
from kcm_cli.testing import HostOptions

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "big"}}
POD["spec"] = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1000"}}}]}


def test_in_its_namespace(kcm_sandbox, kcm_namespace):
    kcm_sandbox.apply(POD, namespace=kcm_namespace)
    kcm_sandbox.advance(5)
    logging.getLogger("kcm_cli.x").warning("No pod runs", extra={"fields": {"key": "a/b"}})
    kcm_sandbox.wait(lambda: [], timeout=0)


def test_in_a_cluster_of_its_own(kcm_start):
    kcm_start(HostOptions(nodes=0)).apply(POD)
    raise ValueError


def test_that_is_well(kcm_sandbox):
    kcm_sandbox.apply({**POD, "metadata": {"name": "unreported"}})


ready = threading.Event()


def main(kubeconfig, stop):
    with kubernetes.config.new_client_from_config(kubeconfig) as client:
        kubernetes.client.CoreV1Api(client).list_node()
    ready.wait()
    raise LookupError("no configuration")


def test_whose_operator_fails(kcm_sandbox, kcm_operator):
    operator = kcm_operator(main)
    ready.set()
    kcm_sandbox.wait(lambda: not operator.alive())


def test_whose_operator_fails_at_once(kcm_operator, kcm_namespace):
    kcm_operator(["sh", "-c", "exit 3"])
"""


def run(folder: Path, text: str, *words: str, without: str = "") -> subprocess.CompletedProcess[str]:
    """pytest on one file in an empty folder. ``without``: a package that cannot be imported."""
    (folder / "tests").mkdir()
    (folder / "temporary").mkdir()
    (folder / "tests" / "test_it.py").write_text(text)
    if without:
        (folder / "tests" / "conftest.py").write_text(f"import sys; sys.modules[{without!r}] = None")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    return subprocess.run(
        command, cwd=folder / "tests", env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_reports_of_failed_tests(tmp_path: Path) -> None:
    result = run(tmp_path, FAILING)
    assert "3 failed, 2 passed, 1 error" in result.stdout, result.stdout + result.stderr
    assert "TimeoutError: not true after 0 s; the last answer was []" in result.stdout
    assert "OperatorError: the operator has ended: LookupError('no configuration')" in result.stdout
    assert "waiting.py" not in result.stdout
    assert 'No pod runs key="a/b"' in result.stdout
    assert "FailedScheduling  pod/big" in result.stdout
    assert "- kcm sandbox https://127.0.0.1:" in result.stdout
    assert "unreported" not in result.stdout.partition("test_in_a_cluster_of_its_own")[2].partition("FAILED")[0]
    left = [one.name for one in (tmp_path / "temporary").iterdir() if not one.name.startswith("pytest-of-")]
    assert left == []


def test_each_worker_has_its_cluster(tmp_path: Path) -> None:
    text = "import pytest\n\n@pytest.mark.parametrize('n', range(4))\ndef test_it(kcm_sandbox, kcm_namespace, n):\n"
    text += "    kcm_sandbox.fail_node('node-1')\n    kcm_sandbox.recover_node('node-1')\n"
    result = run(tmp_path, text, "-n2")
    assert "4 passed" in result.stdout, result.stdout + result.stderr


def test_a_missing_package_is_named_with_the_way_out(tmp_path: Path) -> None:
    result = run(tmp_path, "def test_it(kcm_sandbox): ...", without="httptools")
    text = "kcm's fixtures need the package httptools, which is not installed: reinstall kcm with its dependencies"
    assert text in result.stdout
    assert "Traceback" not in result.stdout


def test_pytest_alone_imports_nothing_of_the_sandbox() -> None:
    code = "import sys, kcm_cli.testing.pytest_plugin; print(*[n for n in sys.modules if n.startswith('kcm_cli.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert set(done.stdout.split()) == {"kcm_cli.testing", "kcm_cli.testing.pytest_plugin"}
