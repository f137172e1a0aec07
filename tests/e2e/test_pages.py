"""The commands of the pages, each run as it stands there, in order, on a sandbox with the objects that they name.

Not here: what installs (``python -m tests.release.walk``), the runbook (test_runbook.py), the examples in Python
(tests/integration/sandbox/test_docs.py), and programs that are not kcm's or kubectl.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.kit.installing import TEAM_LABELS
from tests.kit.pages import blocks, commands
from tests.kit.places import ROOT
from tests.kit.processes import Processes, ask, free_port, until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl here")]
ELSEWHERE = {"runbook.md", "install.md"}
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE)]
RUN = ("kcm", "kubectl", "curl", "export", "cat")
ENDLESS = re.compile(r"kcm sandbox(?! nodes| assets)|kcm (?:-\S+ )*--kubeconfig|kcm --leader")
LATER = re.compile(r"--compare")
"""Commands that say by an exit code of 2 that not all is there yet."""
_SAME = {
    "https://127.0.0.1:10258": "https://127.0.0.1:{other}",
    "--secure-port=10258": "--secure-port={other}",
    "kcm top": "kcm top --once --server=https://127.0.0.1:{manager}",
    "/etc/kubernetes/manifests/kube-controller-manager.yaml": f"{ROOT}/configs/kubernetes/static-pod.yaml",
    "/var/log/kubernetes/audit.log": "audit.log",
    "--for 5m": "--for 2s",
    " --follow": "",
    " --watch": "",
    "| less": "| cat",
}
"""What is other here: ports that are taken, files of a node, and what would wait for a person."""
_BEFORE = {
    "kubectl create deployment web": "kubectl delete hpa,deployment web",
    "kubectl apply -f - <<EOF": "kubectl delete hpa,deployment web",
    "sandbox.kcm.dev/pressure=memory": "kcm sandbox nodes add node-1",
    "tonight.kcm": "kcm plan --save tonight.kcm",
}
"""What a reader has done, or not done, before such a command."""
APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, labels: {app: %s}}
spec:
  replicas: 2
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec: {containers: [{name: web, image: "nginx:1.27", resources: {requests: {cpu: 100m}}}]}
"""
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
"""
FAULTS = "{fault: conflict, user: nobody, resources: [pods]}"


def said(command: str) -> bool:
    """Whether the command is run here."""
    return command.startswith(RUN) and "/etc/kubernetes/controller-manager.conf" not in command and "…" not in command


STEPS = {page.name: [one for block in blocks(page) for one in commands(block) if said(one)] for page in PAGES}


def install(folder: Path) -> None:
    """The package of controllers.md, as ``pip install`` lays it out."""
    info = folder / "team_labels-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team-labels\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kcm.controllers]\nteam-label = team_labels:DESCRIPTOR\n")
    (folder / "team_labels.py").write_text(TEAM_LABELS)


@dataclass
class Reader:
    """Somebody who types the commands of one page."""

    folder: Path
    processes: Processes
    other: int = field(default_factory=free_port)
    manager: int = field(default_factory=free_port)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        config = self.folder / ".kube" / "config"
        self.env = {**os.environ, "PATH": path, "HOME": str(self.folder), "KUBECONFIG": str(config)}
        self.env["PYTHONPATH"] = str(self.folder / "packages")

    def prepare(self) -> None:
        """A cluster with the objects that the pages name."""
        flags = f"--audit-log-path={self.folder}/audit.log -- --secure-port={self.manager}"
        self.endless(f"kcm sandbox {flags}", self.folder / ".kube" / "config")
        shutil.copy(self.folder / ".kube" / "config", self.folder / "kubeconfig")
        (self.folder / "app.yaml").write_text(APP.replace("%s", "app"))
        for name, folder in (("overlays", "overlays/shop"), ("manifests", "manifests")):
            (self.folder / folder).mkdir(parents=True)
            (self.folder / folder / "more.yaml").write_text(APP.replace("%s", name))
        (self.folder / "overlays" / "shop" / "kustomization.yaml").write_text("resources: [more.yaml]\n")
        (self.folder / "web.yaml").write_text(APP.replace("%s", "web"))
        (self.folder / "hpa.yaml").write_text(HPA)
        (self.folder / "faults.yaml").write_text(FAULTS)
        install(self.folder / "packages")
        self.run("kubectl create namespace shop && kubectl create namespace my-system")
        self.run("kubectl create service clusterip webhook -n my-system --tcp=443")
        self.run("kubectl apply -f hpa.yaml")
        for namespace in ("default", "shop"):
            self.run(f"kubectl apply -n {namespace} -f web.yaml")
            self.run(f"kubectl rollout status -n {namespace} deployment/web")

    def type(self, command: str) -> None:
        """One command of the page."""
        here = command
        for theirs, ours in _SAME.items():
            here = here.replace(theirs, ours.format(other=self.other, manager=self.manager))
        if "kcm trace" in here and "--observe" not in here and "--audit-log" not in here:
            here = here.replace("kcm trace", f"kcm trace --server=https://127.0.0.1:{self.manager}", 1)
        if "pod/web-" in here:
            namespace = "shop" if "-n shop" in here else "default"
            pods = self.run(f"kubectl get pods -n {namespace} -l app=web -o name").split()
            here = re.sub(r"pod/web-\w+-\w+", pods[0], here)
        for beginning, before in _BEFORE.items():
            if beginning in here:
                self.run(before)
        if here.startswith("export"):
            name, _, value = here.removeprefix("export ").partition("=")
            self.env[name] = self.run(f"printf %s {value}")
        elif ENDLESS.match(here):
            self.endless(here, self.folder / "started")
        else:
            self.run(here, permitted=(0, 2) if LATER.search(here) else (0,))

    def run(self, command: str, permitted: tuple[int, ...] = (0,)) -> str:
        words = ("bash", "-o", "pipefail", "-ec", command)
        done = subprocess.run(words, env=self.env, cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode in permitted, f"{command}: {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert "Traceback" not in done.stderr
        return done.stdout

    def endless(self, command: str, config: Path) -> None:
        """A server, which has started when it answers."""
        here, dashes, flags = re.sub(r"(?:^| )#.*| &$", "", command).partition(" -- ")
        if here.startswith("kcm sandbox"):
            config.parent.mkdir(exist_ok=True)
            config.unlink(missing_ok=True)
            here = re.sub(r" --(?:port|kubeconfig) \S+| --no-view", "", here)
            here += f" --port 0 --no-view --kubeconfig {config}"
        log = self.folder / "log"
        words = ("bash", "-c", f"exec {here}{dashes}{flags}")
        process = self.processes.start(*words, log=log, env=self.env, cwd=self.folder)
        until(lambda: process.poll() is not None or self._answers(here, config), why=log.read_text)
        assert process.poll() is None, f"{command}\n{log.read_text()}"
        if config.name == "started" and here.startswith("kcm sandbox"):
            process.terminate()
            process.wait(60)

    def _answers(self, command: str, config: Path) -> bool:
        if not command.startswith("kcm sandbox"):
            return ask(f"https://127.0.0.1:{self.other}/healthz").text == "ok"
        if not config.exists():
            return False
        server = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        return ask(f"{server}/readyz").status == 200


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Processes() as processes:
        made = Reader(tmp_path, processes)
        made.prepare()
        yield made


@pytest.mark.parametrize("page", [name for name, steps in STEPS.items() if steps])
def test_the_commands_of_a_page_do_what_it_says(page: str, reader: Reader) -> None:
    for command in STEPS[page]:
        reader.type(command)


def test_the_pages_have_the_commands_that_are_looked_for() -> None:
    counts = {page: len(steps) for page, steps in STEPS.items() if steps}
    assert {"README.md", "getting-started.md", "plan.md", "trace.md", "sandbox.md"} <= counts.keys()
    assert sum(counts.values()) > 50


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ("kcm plan \\\n    -f a\nkubectl get x", ["kcm plan \\\n    -f a", "kubectl get x"]),
        ("kubectl apply -f - <<EOF\nkind: A\nEOF\nkcm plan", ["kubectl apply -f - <<EOF\nkind: A\nEOF", "kcm plan"]),
        ("Not as planned: 1", []),
        ("kubectl get hpa\n\nNAME   REFERENCE", ["kubectl get hpa"]),
    ],
)
def test_blocks_are_read_as_a_shell_does(block: str, expected: list[str]) -> None:
    assert commands(block) == expected
