"""The verdict of ``kcm plan --compare``, and what it prints."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from kcm_cli.cli.plan import main
from kcm_cli.cli.plan_compare import verdict
from kcm_cli.machinery import codec
from kcm_cli.plan import save
from kcm_cli.plan.answer import Object
from kcm_cli.plan.comparison import Comparison, Unexpected
from kcm_cli.plan.ready import Ready
from kcm_cli.plan.steps import DIFFERENTLY, HAPPENED, NOT_YET, UNKNOWN, Step
from tests.unit.plan.test_comparison import SCALED, answer, cluster, obj

WEB = Object("Deployment", "n", "web")
LOW = Ready(WEB, DIFFERENTLY, 3, 3, 2, 3, 1)
OTHER = Unexpected("created", WEB, "", 1, "helm", "2026-01-01T00:00:00Z")


def found(*states: str, begun: str = "2026-01-01T00:00:00Z", elapsed_s: float = 1.0) -> Comparison:
    steps = tuple(Step("changed", WEB, "", 1, state, "") for state in states)
    return Comparison("v", "Comparison", (), "a", begun, "b", elapsed_s, 60.0, steps, (), (), ())


@pytest.mark.parametrize(
    ("comparison", "text"),
    [
        (found(HAPPENED, HAPPENED), "As planned: 2 of 2 planned differences are there"),
        (found(HAPPENED, UNKNOWN), "As planned: 1 of 1 planned differences are there; 1 unknown"),
        (found(), "As planned: nothing was to end differently, and nothing has"),
        (found(HAPPENED, NOT_YET), "As planned so far: 1 of 2 planned differences are there"),
        (found(NOT_YET, begun=""), "Nothing of the plan has begun (0 of 1 planned differences are there)"),
        (
            found(HAPPENED, NOT_YET, elapsed_s=61.0),
            "Not as planned: 1 did not happen in time (1 of 2 planned differences are there)",
        ),
        (
            found(HAPPENED, DIFFERENTLY, DIFFERENTLY),
            "Not as planned: 2 happened differently (1 of 3 planned differences are there)",
        ),
        (
            replace(found(HAPPENED), unexpected=(OTHER, OTHER), availability=(LOW,)),
            "Not as planned: 1 has fewer ready than planned, 2 changes were not planned (1 of 1 planned differences "
            "are there)",
        ),
    ],
)
def test_verdicts(comparison: Comparison, text: str) -> None:
    assert verdict(comparison) == text


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The arguments that compare a plan with a saved snapshot."""
    (tmp_path / "plan.json").write_bytes(answer(SCALED).json())
    odd = obj("Deployment", "api", changed="2026-01-01T10:01:00Z", by="\x1b[2J<script>")
    save(cluster(obj("Deployment", "web", spec={"replicas": 4}), odd), tmp_path / "later.kcm")
    return ["--compare", str(tmp_path / "plan.json"), "--snapshot", str(tmp_path / "later.kcm")]


@pytest.mark.parametrize("form", ["text", "json", "yaml", "html"])
def test_each_form_has_all(form: str, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*files, "-o", form]) == 3
    printed = capsys.readouterr().out
    for part in ("spec.replicas", "differently", "api", "scale deploy/web to 5"):
        assert part in printed
    assert "\x1b[2J" not in printed and (form != "html" or printed.count("<script") == 2)
    if form == "json":
        assert json.loads(printed) == codec.decode_doc(printed.encode())


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--scale", "deploy/web=3"], "--scale: --compare reads a plan that was made already, with its changes"),
        (["--for", "5m"], "--for: --compare reads a plan that was made already, with its changes"),
        (["-o", "markdown"], "--output: --compare prints text, json, yaml or html"),
        (["--kubeconfig", "x"], "--kubeconfig: a snapshot file is as it was saved"),
    ],
)
def test_what_means_nothing_is_refused(
    more: list[str], problem: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*files, *more]) == 1
    assert capsys.readouterr().err == f"Error: {problem}\n"
