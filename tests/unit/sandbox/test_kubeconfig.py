"""Writing kubeconfig files: entries of others are kept."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm_cli.sandbox import kubeconfig

OURS = kubeconfig.document("kcm-sandbox", "https://127.0.0.1:6443", b"CA", {"token": "T"})
THEIRS = """
apiVersion: v1
kind: Config
clusters: [{name: work, cluster: {server: "https://work"}}]
users: [{name: me, user: {token: mine}}]
contexts: [{name: work, context: {cluster: work, user: me, namespace: n}}]
current-context: work
preferences: {colors: true}
"""


def written(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config"
    kubeconfig.join(path, OURS)
    assert written(path) == OURS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["config"]


def test_an_empty_file_is_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("\n")
    kubeconfig.join(path, OURS)
    assert written(path) == OURS


def test_other_clusters_are_kept_and_the_sandbox_is_current(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    kubeconfig.join(path, OURS)
    found, theirs = written(path), yaml.safe_load(THEIRS)
    for key in ("clusters", "users", "contexts"):
        assert found[key] == [*theirs[key], *OURS[key]]  # type: ignore[misc]
    assert found["current-context"] == "kcm-sandbox"
    assert found["preferences"] == {"colors": True}


def test_an_earlier_sandbox_is_replaced_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "config"
    kubeconfig.join(path, kubeconfig.document("kcm-sandbox", "https://127.0.0.1:1", b"OLD", {"token": "OLD"}))
    kubeconfig.join(path, OURS)
    assert written(path) == OURS


def test_a_symbolic_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "real").write_text(THEIRS)
    (tmp_path / "config").symlink_to(tmp_path / "real")
    kubeconfig.join(tmp_path / "config", OURS)
    assert (tmp_path / "config").is_symlink()
    assert len(written(tmp_path / "real")["clusters"]) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "is not YAML"),
        ("just text", "is no kubeconfig"),
        ("kind: Pod", "is no kubeconfig"),
        ("clusters: [{cluster: {}}]", "without name in clusters"),
    ],
    ids=["not YAML", "text", "another kind", "no name"],
)
def test_an_invalid_kubeconfig_is_not_changed(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        kubeconfig.join(path, OURS)
    assert path.read_text() == text
    assert len(list(tmp_path.iterdir())) == 1


def test_a_pipe_is_written_to_and_neither_read_nor_replaced(tmp_path: Path) -> None:
    """As /dev/stdout; a device such as /dev/full could be read without end, and would be gone for others."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    kubeconfig.join(pipe, OURS)
    assert yaml.safe_load(os.read(reader, 1 << 16)) == OURS
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ["pipe"]


def test_a_read_only_file_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda asked, mode: not (asked == path and mode == os.W_OK))  # root may anything
    with pytest.raises(PermissionError):
        kubeconfig.join(path, OURS)
    assert path.read_text() == THEIRS


def test_what_cannot_be_looked_at_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the home of another user; here a name that is too long, which root cannot look at, either."""
    nowhere, pipe = tmp_path / ("a" * 300), tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setenv("KUBECONFIG", f"{nowhere}{os.pathsep}{pipe}")
    assert kubeconfig.usual() == str(nowhere)
    assert "there is no kubeconfig" in kubeconfig.missing(str(nowhere))
    assert kubeconfig.missing(str(pipe)) == ""


def test_the_files_of_kubeconfig_that_exist_are_read_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("")
    a, b, gone = (f"{tmp_path}/{name}" for name in ("a", "b", "gone"))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(("", a, gone, b, a)))
    assert kubeconfig.usual() == f"{a}{os.pathsep}{b}"
    assert kubeconfig.missing(f"{a}{os.pathsep}{b}") == ""
    assert kubeconfig.missing(f"{gone}{os.pathsep}{b}") == ""
    assert gone in kubeconfig.missing(gone)


def test_a_home_that_nobody_knows_has_no_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as in a container whose user has no entry
    assert kubeconfig.missing(kubeconfig.usual()).startswith("there is no kubeconfig ~/.kube/config: ")
