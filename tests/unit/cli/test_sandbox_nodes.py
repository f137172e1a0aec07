"""The command line of ``kcm sandbox nodes``: mistakes, and the selected cluster."""

from pathlib import Path

import pytest
import yaml

from kcm_cli.cli import sandbox_nodes
from kcm_cli.sandbox import kubeconfig
from tests.kit.processes import free_port


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("add --count 0", "--count: 0 is less than one"),
        ("add --count -1", "--count: -1 is less than one"),
        ("add a b --count 2", "--count: it is for nodes that are not named"),
        ("add --capacity cpu=8cores", '--capacity: "cpu=8cores" is no size such as cpu=8 or memory=16Gi'),
        ("remove", "remove: name a node"),
        ("fail a --count 2", "--count: it is for add"),
        ("add a\udcff", '"a\udcff" is not UTF-8'),
        ("recover a --capacity cpu=8", "--capacity: it is for add"),
        ("explode a", 'unknown command "explode": add, remove, fail or recover'),
        (
            "add --kubeconfig no/such/file",
            "cannot read kubeconfig no/such/file: No such file or directory (--kubeconfig names that of the sandbox)",
        ),
    ],
)
def test_mistakes_are_one_clear_line(words: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sandbox_nodes.main(words.split()) == 1
    assert capsys.readouterr() == ("", f"Error: {problem}\n".replace("\udcff", "\\xff"))


def test_a_stopped_sandbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = f"https://127.0.0.1:{free_port()}"
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(kubeconfig.document("x", server, b"", {})))
    assert sandbox_nodes.main(["fail", "a", "--kubeconfig", str(path)]) == 1
    errors = capsys.readouterr().err
    assert errors == f"Error: GET {server}/api/v1/nodes/a: connection refused (does the sandbox run?)\n"


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


@pytest.mark.parametrize(
    ("named", "chosen"),
    [
        ("{folder}/a", "a"),
        ("{folder}/gone:{folder}/a", "a"),
        ("{folder}/silent:{folder}/a:{folder}/b", 'b has no context "x"'),
        (":{folder}/silent", "silent"),
        ("{folder}/gone", "gone"),
    ],
)
def test_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: str, chosen: str
) -> None:
    for name in ("a", "b"):
        written(tmp_path, name, "current-context: x")
    written(tmp_path, "silent", "kind: Config")
    monkeypatch.setenv("KUBECONFIG", named.format(folder=tmp_path))
    assert sandbox_nodes.main(["fail", "n"]) == 1
    assert str(tmp_path / chosen) in capsys.readouterr().err
