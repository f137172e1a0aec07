"""kubernetes-asyncio's temporary files are shared by the whole process: kcm leaves those of others alone."""

from pathlib import Path

from kubernetes_asyncio.config import kube_config

from kcm_cli.rest import asyncio_config


def test_only_our_own_files_are_removed(tmp_path: Path, monkeypatch) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.touch()
    modules = asyncio_config.ConfigModules()
    monkeypatch.setattr(kube_config, "_temp_files", {"content": str(theirs)})
    with modules.own_temp_files():
        assert kube_config._temp_files == {}, "their file must not stand for our data"
        ours.touch()
        kube_config._temp_files["content"] = str(ours)
    assert kube_config._temp_files == {"content": str(theirs)}
    assert theirs.exists() and not ours.exists()
