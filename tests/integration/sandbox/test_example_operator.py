"""The example repository in configs/example-operator: its tests pass, alone, and its recipes are well-formed."""

import shutil
import tomllib
from pathlib import Path

import yaml

from tests.kit.forked import run_pytest
from tests.kit.places import ROOT

EXAMPLE = ROOT / "configs" / "example-operator"


def test_its_tests_pass(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    code, output = run_pytest(folder, "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider")
    assert code == 0, output
    assert "5 passed" in output


def test_its_recipes_run_the_tests() -> None:
    workflow = yaml.safe_load((EXAMPLE / ".github" / "workflows" / "test.yaml").read_text())
    steps = [step.get("run", "") for step in workflow["jobs"]["test"]["steps"]]
    pipeline = yaml.safe_load((EXAMPLE / ".gitlab-ci.yml").read_text())
    for commands in (steps, pipeline["test"]["script"]):
        assert "pip install '.[test]'" in commands
        assert any(command.startswith("pytest") for command in commands)


def test_its_package_has_what_the_image_copies() -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    assert "kcm-cli" in project["project"]["optional-dependencies"]["test"]
    copied = next(line for line in (EXAMPLE / "Containerfile").read_text().splitlines() if line.startswith("COPY"))
    assert all((EXAMPLE / name).is_file() for name in copied.split()[1:-1])
