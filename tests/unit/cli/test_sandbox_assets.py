"""The folder for envtest, and the flags of the sandboxes that start there."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from kcm_cli.cli import kube_apiserver, sandbox_assets
from kcm_cli.cli.sandbox_assets import Cluster, read_flags
from kcm_cli.sandbox.assets import folder


def baked(made: Path, **environ: str) -> str:
    """The flags that a kube-apiserver of this folder gets."""
    script = (made / "kube-apiserver").read_text().replace("exec ", "echo ").rpartition("\n")[0]
    shell = "\n".join(line for line in script.splitlines() if not line.startswith("echo "))
    done = subprocess.run(
        ["/bin/sh", "-c", f'{shell}\nprintf %s "${folder.FLAGS}"'],
        capture_output=True,
        text=True,
        env=environ,
        check=True,
    )
    return done.stdout


def test_flags_are_defaults_that_the_environment_overrides(tmp_path: Path) -> None:
    flags = ["--nodes=0", "--", "--controllers=*,-cronjob", '--cluster-name=it\'s "$HOME" `id` \\ {a}']
    made = folder.write(flags, tmp_path / "a", {"PATH": ""})
    assert shlex.split(baked(made)) == flags
    assert baked(made, KCM_SANDBOX_FLAGS="") == ""
    assert baked(made, KCM_SANDBOX_FLAGS="--no-manager") == "--no-manager"


def test_each_choice_has_its_folder(tmp_path: Path) -> None:
    environ = {"XDG_CACHE_HOME": str(tmp_path), "PATH": ""}
    first, second = folder.write([], environ=environ), folder.write(["--nodes=0"], environ=environ)
    assert first != second
    assert first == folder.write([], environ=environ)
    assert first.parent == tmp_path / "kcm" / "assets"
    assert sorted(each.name for each in first.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]


def test_without_a_home_the_folder_has_to_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as in a container whose user has no entry
    assert sandbox_assets.main([]) == 1
    why = "there is no home directory, so --dir has to name a folder"
    assert capsys.readouterr() == ("", f"Error: cannot write the assets: {why}\n")
    assert sandbox_assets.main([f"--dir={tmp_path}"]) == 0


def test_kubectl_is_the_installed_one_or_an_error(tmp_path: Path) -> None:
    made = folder.write([], tmp_path / "none", {"PATH": ""})
    done = subprocess.run([made / "kubectl"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    installed = tmp_path / "kubectl"
    installed.write_text('#!/bin/sh\necho "$@"\n')
    installed.chmod(0o755)
    made = folder.write([], tmp_path / "some", {"PATH": str(tmp_path)})
    done = subprocess.run([made / "kubectl", "get", "a b"], capture_output=True, text=True, check=True)
    assert done.stdout == "get a b\n"


def test_the_command_prints_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "it")
    assert sandbox_assets.main(["--dir", target, "--route", "a.b=1,c.d=h:2", "--nodes", "1"]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    cluster, problems = read_flags(shlex.split(baked(Path(target))))
    assert (cluster, problems) == (Cluster(1, True, (("a.b", "1"), ("c.d", "h:2")), ()), [])


def test_mistakes_are_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sandbox_assets.main(["--dir", str(tmp_path), "--nodes=-1", "--route=a=1", "x"]) == 1
    assert capsys.readouterr().err.count("Error: ") == 3
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "nodes", "manager"),
    [
        ("", 0, False),
        ("--nodes 2", 2, True),
        ("--nodes 2 --no-manager", 2, False),
        ("--manager", 0, True),
        ("-- --controllers=namespace-controller", 0, True),
        ("--no-manager", 0, False),
    ],
)
def test_suites_get_an_api_server_alone_unless_they_ask_for_more(flags: str, nodes: int, manager: bool) -> None:
    cluster, problems = read_flags(shlex.split(flags))
    assert (cluster.nodes, cluster.manager, problems) == (nodes, manager, [])


def test_a_quotation_that_does_not_end_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCM_SANDBOX_FLAGS", '--nodes="1')
    assert kube_apiserver.main(["--etcd-servers=x"]) == 1
    assert capsys.readouterr() == ("", "Error: kube-apiserver: KCM_SANDBOX_FLAGS: No closing quotation\n")


def test_services_are_not_where_simulated_nodes_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCM_SANDBOX_FLAGS", "--nodes=1")
    assert kube_apiserver.main(["--etcd-servers=x", "--service-cluster-ip-range=10.244.0.0/16"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("Error: kube-apiserver: --service-cluster-ip-range: 10.244.0.0/16 overlaps 10.244.0.0/14")
