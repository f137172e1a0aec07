"""``make walk``: a newcomer's way, with nothing but the pages, in an empty folder with an empty home.

Installs as docs/install.md says, gets a Deployment onto a sandbox by the lines of docs/getting-started.md, and has the
first tests of docs/testing-operators.md and the example repository pass. Prints how long each took. pipx and uv come
from the package index. In a fresh Debian root, run it there: it needs git, make, Python with venv, and kubectl.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.pages import blocks, commands
from tests.kit.places import ROOT

READY_S = 60
_FILE = re.compile(r"^```(?:python|yaml)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "PIP_FIND_LINKS", "PIP_INDEX_URL", "HTTPS_PROXY")
"""What of this environment says where packages come from; nothing else is kept."""


class Walk:
    """The newcomer. Each command runs in ``here``, which ``cd`` changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = self.here = folder
        self.env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self.env |= {"HOME": str(folder / "home"), "UV_NO_PROGRESS": "1"}
        (folder / "home").mkdir()
        self.began = time.monotonic()

    def run(self, command: str) -> str:
        """Ends the program with what the command printed if it fails."""
        words = ("bash", "-ec", command)
        done = subprocess.run(words, cwd=self.here, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout

    def path(self, *folders: Path) -> None:
        self.env["PATH"] = ":".join((*map(str, folders), self.env["PATH"]))

    def tell(self, what: str) -> float:
        """Print what was reached, after how long, and with how much CPU: on a busy machine the time says little."""
        took = time.monotonic() - self.began
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{took:6.0f} s  {what} ({usage.ru_utime + usage.ru_stime:.0f} s of CPU)", flush=True)
        return took


def page(name: str, *programs: str) -> list[str]:
    """The commands of a page that begin with one of the programs."""
    found = [one for block in blocks(ROOT / "docs" / name) for one in commands(block)]
    return [one for one in found if one.startswith(programs)]


@contextmanager
def sandbox(walk: Walk) -> Iterator[None]:
    """The first sandbox of getting-started.md, on a free port."""
    (command,) = [one for one in page("getting-started.md", "kcm sandbox") if "--kubeconfig" in one]
    config = walk.here / "kubeconfig"
    log = (walk.folder / "log").open("wb")
    words = ("bash", "-c", f"exec {command} --port 0 --no-view")
    process = subprocess.Popen(words, cwd=walk.here, env=walk.env, stdout=log, stderr=log)
    try:
        end = time.monotonic() + READY_S
        ready = ("kubectl", f"--kubeconfig={config}", "get", "--raw", "/readyz")
        while not config.exists() or subprocess.run(ready, env=walk.env, capture_output=True, check=False).returncode:
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{command}\n{(walk.folder / 'log').read_text()}")
            time.sleep(0.1)
        walk.env["KUBECONFIG"] = str(config)
        yield
    finally:
        process.terminate()
        process.wait()
        log.close()


def install(walk: Walk) -> None:
    """A clone, and the virtual environment of install.md."""
    walk.run(f"git clone -q {ROOT} kcm")
    walk.here = walk.folder / "kcm"
    for command in page("install.md", "python3 -m venv /opt", "/opt/kcm/bin"):
        walk.run(command.replace("/opt/kcm", str(walk.folder / "opt")))
    walk.path(walk.folder / "opt" / "bin")


def deploy(walk: Walk) -> None:
    """The Deployment of getting-started.md, and what follows on its page."""
    with sandbox(walk):
        for command in page("getting-started.md", "kubectl"):
            walk.run(command)
            if command.startswith("kubectl rollout status"):
                break
        took = walk.tell("from nothing to a Deployment on a sandbox")
    if took > READY_S:
        print(f"        longer than the {READY_S} s that an idle machine with two cores takes", flush=True)


def operator(walk: Walk) -> None:
    """The tests of testing-operators.md whose packages the page names."""
    for command in page("testing-operators.md", "pip install pytest", "pip install kopf"):
        walk.run(command.replace("pip install", "pip install -q"))
    walk.tell("the packages of the examples")
    text = (ROOT / "docs" / "testing-operators.md").read_text()
    files = dict(_FILE.findall(text))
    tests = walk.here = walk.folder / "tests"
    for name in ("conftest.py", "crds/greetings.yaml", "greeting_operator.py", "test_rollout.py", "test_greetings.py"):
        (tests / name).parent.mkdir(parents=True, exist_ok=True)
        (tests / name).write_text(files[name])
    walk.run("pytest -q test_rollout.py")
    walk.tell("the first test")
    walk.run("pytest -q test_greetings.py")
    walk.tell("the test of an operator")
    walk.here = walk.folder / "example"
    shutil.copytree(ROOT / "configs" / "example-operator", walk.here)
    (command,) = page("testing-operators.md", "pip install '.[test]'")
    walk.run(command)
    walk.tell("the example repository")


def others(walk: Walk) -> None:
    """The other ways of install.md: pipx and uv."""
    walk.here = walk.folder / "kcm"
    walk.run(f"python3 -m venv {walk.folder}/tools && {walk.folder}/tools/bin/pip install -q pipx uv")
    walk.path(walk.folder / "tools" / "bin")
    for command in page("install.md", "pipx", "uv"):
        tool = command.split()[0]
        walk.env |= {"PIPX_HOME": f"{walk.folder}/pipx", "PIPX_BIN_DIR": f"{walk.folder}/{tool}-bin"}
        walk.env |= {"PIPX_MAN_DIR": f"{walk.folder}/man", "UV_TOOL_DIR": f"{walk.folder}/uv"}
        walk.env |= {"UV_TOOL_BIN_DIR": f"{walk.folder}/{tool}-bin"}
        walk.run(command)
        walk.tell(f"{tool}: {walk.run(f'{walk.folder}/{tool}-bin/kcm --version').strip()}")
    if not (walk.folder / "man" / "man1" / "kcm.1").exists():
        sys.exit("pipx installed no man pages")


def main() -> None:
    if not shutil.which("kubectl"):
        sys.exit("kubectl is not installed (Debian: the package kubernetes-client)")
    with tempfile.TemporaryDirectory(prefix="kcm-walk-") as name:
        walk = Walk(Path(name))
        for step in (install, deploy, operator, others):
            step(walk)


if __name__ == "__main__":
    main()
