"""Starting and stopping a sandbox: all resources are released, however far the start came."""

import asyncio
import socket
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kcm_cli.sandbox.apiserver.store import DirectoryInUse
from kcm_cli.sandbox.run import SandboxOptions, SandboxServer


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary folders in this test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def stopped(sandbox: SandboxServer) -> None:
    asyncio.run(sandbox.stop())


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_stop_before_prepare_does_nothing() -> None:
    stopped(SandboxServer(SandboxOptions(port=0)))


def test_stop_releases_what_prepare_acquired(temporary: Path) -> None:
    sandbox = SandboxServer(SandboxOptions(port=0))
    sandbox.prepare()
    assert list(temporary.iterdir())
    stopped(sandbox)
    assert not list(temporary.iterdir())
    again = SandboxServer(SandboxOptions(port=sandbox.port))
    again.prepare()
    stopped(again)


def test_a_port_in_use_releases_the_data_directory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        sandbox = SandboxServer(SandboxOptions(port=taken.getsockname()[1], data_dir=str(tmp_path / "data")))
        with pytest.raises(OSError, match="in use"):
            sandbox.prepare()
        stopped(sandbox)
    again = SandboxServer(SandboxOptions(port=0, data_dir=str(tmp_path / "data")))
    again.prepare()
    stopped(again)


def test_invalid_keys_release_the_port(tmp_path: Path) -> None:
    (tmp_path / "data" / "pki").mkdir(parents=True)
    for name in ("ca.crt", "ca.key"):
        (tmp_path / "data" / "pki" / name).write_text("no key")
    sandbox = SandboxServer(SandboxOptions(port=0, data_dir=str(tmp_path / "data")))
    with pytest.raises(ValueError):
        sandbox.prepare()
    stopped(sandbox)
    assert is_free(sandbox.port)
    with socket.create_server(("127.0.0.1", sandbox.port)):
        pass


def test_an_invalid_database_releases_the_lock(tmp_path: Path) -> None:
    (tmp_path / "state.db").write_text("no database, but long enough to be looked at")
    options = SandboxOptions(port=0, data_dir=str(tmp_path))
    for _ in range(2):
        sandbox = SandboxServer(options)
        with pytest.raises(sqlite3.DatabaseError):
            sandbox.prepare()
        stopped(sandbox)


def test_a_directory_in_use_remains_locked(tmp_path: Path) -> None:
    options = SandboxOptions(port=0, data_dir=str(tmp_path))
    first, second = SandboxServer(options), SandboxServer(options)
    first.prepare()
    with pytest.raises(DirectoryInUse):
        second.prepare()
    stopped(second)
    with pytest.raises(DirectoryInUse):
        SandboxServer(options).prepare()
    stopped(first)


def test_the_port_is_reserved_before_the_sandbox_serves(tmp_path: Path) -> None:
    sandbox = SandboxServer(SandboxOptions(port=0))
    sandbox.prepare()
    sandbox.write_kubeconfig()
    try:
        assert not is_free(sandbox.port)
        with pytest.raises(OSError, match="in use"):
            SandboxServer(SandboxOptions(port=sandbox.port)).prepare()
    finally:
        stopped(sandbox)
    assert is_free(sandbox.port)


def test_a_start_does_not_load_what_scrapes_need() -> None:
    code = "import sys; from kcm_cli.sandbox import run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert "kcm_cli.sandbox.apiserver.metrics" in loaded
    assert loaded.isdisjoint({"prometheus_client", "http.server", "wsgiref"})
