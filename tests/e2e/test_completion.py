"""Completion in the shells themselves: what a line becomes by the tab key."""

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes import END_S

BIN = Path(sys.executable).parent
LINES = {
    "kcm pla": "plan",
    "kcm --controllers=job": "--controllers=job-controller",
    "kcm --controllers job": "--controllers job-controller",
    "kcm --controllers=*,-job": "--controllers=*,-job-controller",
    "kcm --feature-gates=AllAlpha=t": "--feature-gates=AllAlpha=true",
    "kcm --leader-elect=f": "--leader-elect=false",
    "kcm --logging-format=j": "--logging-format=json",
    "kcm --kubeconfig=clus": "--kubeconfig=cluster.yaml",
    "kcm plan --force-c": "plan --force-conflicts",
    "kcm sandbox nodes rem": "sandbox nodes remove",
    "kcm sandbox -- --controllers=cron": "sandbox -- --controllers=cronjob-controller",
}
SHELLS = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), "source <(kcm --show-completion bash)"),
    "zsh": (
        ("zsh", "-f", "-i"),
        "setopt no_nomatch; autoload -Uz compinit; compinit -u -D; source <(kcm --show-completion zsh)",
    ),
}
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not (BIN / "kcm").exists(), reason="kcm is not installed")]


def needs(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")


def read(terminal: int, until: str) -> str:
    text = ""
    while until not in text:
        ready, _, _ = select.select([terminal], [], [], END_S)
        assert ready, text
        text += os.read(terminal, 65536).decode()
    return text


def completed(shell: str, folder: Path) -> dict[str, str]:
    """What the shell made of each line."""
    command, setup = SHELLS[shell]
    environment = {
        **os.environ,
        "PATH": f"{BIN}:/usr/bin:/bin",
        "TERM": "dumb",
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
    }
    try:
        terminal, far = pty.openpty()
    except OSError as error:  # a root without /dev/pts
        pytest.skip(f"no pseudo-terminals: {error}")
    streams = {"stdin": far, "stdout": far, "stderr": far}
    child = subprocess.Popen(["setsid", "--ctty", *command], cwd=folder, env=environment, **streams)
    os.close(far)
    try:
        # kcm itself is not run: a function of its name prints the words
        os.write(terminal, f"{setup}; kcm() {{ echo GOT \"$*\" DONE; }}; echo REA''DY\n".encode())
        read(terminal, "READY\r\n")
        found = {}
        for line in LINES:
            os.write(terminal, f"{line}\t\n".encode())
            found[line] = read(terminal, " DONE").rpartition("GOT ")[2].partition(" DONE")[0]
        return found
    finally:
        child.kill()
        child.wait()
        os.close(terminal)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_tab_key(shell: str, tmp_path: Path) -> None:
    needs(shell)
    (tmp_path / "cluster.yaml").touch()
    found = completed(shell, tmp_path)
    assert {line: text.rstrip() for line, text in found.items()} == LINES


def test_fish(tmp_path: Path) -> None:
    needs("fish")
    (tmp_path / "cluster.yaml").touch()
    found = {}
    for line in LINES:
        script = f"kcm --show-completion fish | source; complete -C '{line}'"
        environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(
            ["fish", "--no-config", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found[line] = done.stdout.split("\t")[0].strip()
    assert found == {line: text.rpartition(" ")[2] for line, text in LINES.items()}
