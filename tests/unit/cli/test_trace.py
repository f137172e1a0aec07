"""The command line of ``kcm trace``."""

import json
from pathlib import Path

import pytest

from kcm_cli.cli.trace import FLAGS, _read, main
from kcm_cli.rest import access
from tests.incidents.replay import METADATA, audit_log, target


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ([], "name one object as KIND/NAME, such as deploy/web"),
        (["deploy/web", "po/x"], "name one object as KIND/NAME"),
        (["web"], "web is not KIND/NAME, such as deploy/web"),
        (["a/b/c"], "a/b/c is not KIND/NAME"),
        (["po/\udcff"], '"po/\\xff" is not UTF-8'),
        (["po/x", "-n\udcff"], '--namespace: "\\xff" is not UTF-8'),
        (["po/x", "--since=0s"], "--since: must be a duration above 0, such as 10m"),
        (["po/x", "-o", "yaml"], "--output: yaml is none of text, json, html"),
        (["po/x", "-o", "html", "--follow"], "--follow: it has no end, and a page has one"),
        (["po/x", "--for=5m"], "--for: must be a duration such as 5m, and goes with --observe"),
        (["po/x", "--observe", "--for=5m", "--follow"], "--follow: it has no end, so --for has no meaning"),
        (["po/x", "--observe", "--server=https://a:1"], "--kubeconfig: name the cluster that is observed beside"),
        (["po/x", "--audit-log=a", "--follow"], "--follow: a log is read once; follow with --observe"),
        (["po/x", "--audit-log=/nowhere/a"], "--audit-log: cannot read /nowhere/a"),
        (["po/x", "--observe", "--kubeconfig=/nowhere"], "cannot read kubeconfig /nowhere"),
        (["po/x", "--server=http://x"], "--server: http://x is no address such as https://127.0.0.1:10257"),
        (["po/x", "--token=a", "--token-file=/nowhere"], "--token-file: it takes the place of --token"),
    ],
)
def test_mistakes_are_one_line(args: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 1
    assert capsys.readouterr().err.startswith(f"Error: {text}")


@pytest.mark.parametrize(
    ("args", "namespace"),
    [
        ([], "default"),
        (["--observe"], "shop"),
        (["--observe", "-n", "x"], "x"),
        (["--kubeconfig", "config", "--insecure-skip-tls-verify"], "shop"),
        (["--audit-log", "a"], "default"),
    ],
)
def test_the_namespace_is_that_of_the_context(
    args: list[str], namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = "contexts: [{name: c, context: {cluster: k, namespace: shop}}]\ncurrent-context: c\n"
    (tmp_path / "config").write_text(f"{context}clusters: [{{name: k, cluster: {{server: 'http://a:1'}}}}]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "config")
    problems: list[str] = []
    command = _read(FLAGS.parse(["po/x", *args]), problems)
    assert problems == [] and command is not None and command.target.namespace == namespace


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "--since" in capsys.readouterr().out


def test_a_manager_that_does_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["po/x", "--server=https://127.0.0.1:1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("(does the manager run? --server names its address)")


def test_a_pod_observes_its_own_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("HOME", str(tmp_path)), ("KUBERNETES_SERVICE_HOST", "a"), ("KUBERNETES_SERVICE_PORT", "1")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(access, "SERVICE_ACCOUNT", tmp_path)
    assert main(["po/x", "--observe"]) == 1
    assert f"cannot read token file {tmp_path}/token" in capsys.readouterr().err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert main(["po/x", "--observe"]) == 1
    assert f"there is no kubeconfig {tmp_path}/none" in capsys.readouterr().err


def test_an_audit_log_asks_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(audit_log("scale-down", METADATA) + b"{\n")
    about = target("scale-down")
    assert main([f"pod/{about.name}", "-n", "scale-down", f"--audit-log={log}", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "was deleted by replicaset-controller (known: audit log" in found["head"][0]
    assert "1 could not be read" in found["notes"][0]
    edges = {node["edge"] for node in found["nodes"] if node["parent"] is not None}
    assert edges <= {"known", "inferred"} and "inferred" in edges


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(audit_log("scale-down", METADATA))
    assert main([f"pod/{target('scale-down').name}", "-n", "scale-down", f"--audit-log={log}", "-o", "html"]) == 0
    found = capsys.readouterr().out
    assert found.startswith("<!DOCTYPE html>") and "was scaled by alice" in found
