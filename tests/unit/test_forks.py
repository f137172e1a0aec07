"""Tests in several processes are reported as in one."""

import os
import subprocess
import sys
from pathlib import Path

from tests.kit.places import ROOT

MANY = """
import os
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

@pytest.fixture(scope="module")
def shared():
    yield
    (FOLDER / f"ended-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(30))
def test_passes(number, shared, capfd, tmp_path):
    os.write(1, b"low")
    print("high", number)
    assert capfd.readouterr().out == f"lowhigh {number}\\n"
    (FOLDER / f"ran-{number}").touch()

def test_fails(shared):
    print("printed before")
    assert 1 == 2

@pytest.mark.skip(reason="no moon here")
def test_is_skipped(): ...

@pytest.mark.xfail
def test_is_known():
    raise ValueError

def test_warns():
    warnings.warn("an odd thing")
"""
DIES = """
import os

def test_dies():
    os._exit(3)
"""


def run(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code and output of pytest in three processes."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfs", "-c", os.devnull, "-p", "no:cacheprovider"]
    command += ["-p", "no:schemathesis", "-p", "tests.kit.forks", "--forks", "3", f"--rootdir={folder}", *words]
    done = subprocess.run([*command, str(folder)], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_all_tests_run_once_and_are_reported(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(MANY)
    code, output = run(tmp_path)
    assert code == 1
    assert "1 failed, 31 passed, 1 skipped, 1 xfailed, 1 warning" in output, output
    assert "printed before" in output
    assert "an odd thing" in output
    assert "no moon here" in output
    assert len(list(tmp_path.glob("ran-*"))) == 30
    assert 1 <= len(list(tmp_path.glob("ended-*"))) <= 3


def test_a_process_that_dies_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(MANY)
    (tmp_path / "test_dies.py").write_text(DIES)
    code, output = run(tmp_path)
    assert code == 1
    assert "test_dies.py::test_dies: the process that ran it has ended with code 3" in output, output


def test_the_first_failure_can_end_all(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(MANY)
    code, output = run(tmp_path, "-x")
    assert code == 1
    assert "stopping after 1 failures" in output, output
