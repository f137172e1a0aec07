"""The output of ``kcm plan`` for what others have written."""

import gzip
from pathlib import Path

import pytest

from kcm_cli.cli.plan import main
from kcm_cli.machinery import codec

NAMES = "\x1b[2J", "\x9b2J", "\x07"


def snapshot(path: Path, version: str) -> str:
    """The path of a snapshot of an empty cluster of a version."""
    header = {"format": "kcm-snapshot", "version": 2, "takenAt": "2026-01-01T00:00:00Z", "serverVersion": version}
    path.write_bytes(gzip.compress(codec.encode(header) + b'\n{"end":0}\n'))
    return str(path)


@pytest.mark.parametrize("form", ["text", "markdown", "json", "yaml", "html"])
@pytest.mark.parametrize("sign", NAMES)
def test_no_name_controls_the_terminal(
    sign: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = snapshot(tmp_path / "cluster.kcm", f"v1{sign}")
    name = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"a{sign}"}}
    (tmp_path / "map.json").write_bytes(codec.encode(name))
    assert main(["--snapshot", file, "-f", str(tmp_path / "map.json"), "--for=1s", "-o", form]) == 0
    found = capsys.readouterr().out
    assert "ConfigMap" in found
    assert sign not in found or form == "json"
    assert form == "json" or not any(char < " " and char != "\n" for char in found)


@pytest.mark.parametrize("sign", NAMES)
def test_no_error_controls_the_terminal(sign: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = snapshot(tmp_path / "cluster.kcm", "v1")
    name = {"apiVersion": "v1", "kind": f"A{sign}", "metadata": {"name": "a"}}
    (tmp_path / "map.json").write_bytes(codec.encode(name))
    assert main(["--snapshot", file, "-f", str(tmp_path / "map.json")]) == 1
    found = capsys.readouterr().err
    assert 'no matches for kind "A' in found and sign not in found
