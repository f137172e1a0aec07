"""``kcm plan`` as a process: on a sandbox, on a real API server, and on a file."""

import json
import logging
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from kcm_cli.cli.plan import main
from kcm_cli.plan import save
from tests.conftest import Sandbox
from tests.e2e.test_originals import ASSETS, needs
from tests.kit.processes import KCM, ask, free_port, until
from tests.kit.servers import kubeconfig, real_server
from tests.unit.plan.clusters import settled

pytestmark = pytest.mark.e2e
READS = frozenset(("get", "list", "watch"))
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
_POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
"""


def run(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """``kcm plan`` with these arguments."""
    whole = {key: value for key, value in os.environ.items() if key not in ("KUBECONFIG", "FORCE_COLOR", "COLUMNS")}
    return subprocess.run(
        [*KCM, "plan", *words], capture_output=True, text=True, timeout=300, env={**whole, **(env or {})}
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A saved snapshot of a cluster that has settled."""
    path = tmp_path_factory.mktemp("plan") / "cluster.kcm"
    save(settled(), path)
    return str(path)


@pytest.fixture
def own_log_level() -> Iterator[None]:
    """Where kcm plan runs in this process."""
    logger = logging.getLogger("kcm_cli")
    level = logger.level
    yield
    logger.setLevel(level)


def writes(url: str, token: str) -> Counter[str]:
    """How many requests that write a server has answered, by verb."""
    counts: Counter[str] = Counter()
    for labels, count in _REQUESTS.findall(ask(f"{url}/metrics", token=token).text):
        verb = dict(re.findall(r'(\w+)="([^"]*)"', labels))["verb"]
        if verb.lower() not in READS:
            counts[verb] += int(float(count))
    return counts


def test_a_sandbox_is_only_read(start_sandbox: Callable[..., Sandbox], tmp_path: Path) -> None:
    sandbox = start_sandbox("--nodes", "0", "--no-manager")
    before = writes(sandbox.url, sandbox.token)
    saved = tmp_path / "cluster.kcm"
    done = run("--kubeconfig", str(sandbox.kubeconfig), "--save", str(saved), "-o", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert json.loads(done.stdout)["kind"] == "Plan"
    assert writes(sandbox.url, sandbox.token) == before
    again = run("--snapshot", str(saved), "-o", "json")
    assert json.loads(again.stdout)["source"] == json.loads(done.stdout)["source"]


@needs("kube-apiserver")
def test_a_real_server_is_only_read_at_one_version(tmp_path: Path) -> None:
    policy, audit = tmp_path / "policy.yaml", tmp_path / "audit.log"
    policy.write_text(_POLICY)
    flags = (f"--audit-policy-file={policy}", f"--audit-log-path={audit}", "--audit-log-mode=blocking")
    with real_server(Path(ASSETS), tmp_path, *flags) as url:
        config = tmp_path / "kubeconfig"
        config.write_text(kubeconfig(url))
        done = run("--kubeconfig", str(config), "-o", "json", "--include", "configmaps,events,custom")
        assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in audit.read_text().splitlines()]
    ours = [event for event in events if event["userAgent"].endswith("/plan")]
    assert len(ours) > 40
    assert {event["verb"] for event in ours} <= READS
    assert not any("secrets" in event["requestURI"] for event in ours)
    source = json.loads(done.stdout)["source"]
    assert source["torn"] == []
    assert [gap[0] for gap in source["gaps"]] == ["secrets"]


def test_exit_codes_and_outputs(file: str) -> None:
    drain = ("--snapshot", file, "--drain", "node-1", "--for", "2m")
    text = run(*drain)
    assert text.returncode == 0
    assert "\x1b" not in text.stdout and text.stderr == ""
    assert "2 problems: 1 node is not drained, 1 eviction is blocked by a disruption budget" in text.stdout
    assert not any(
        line.endswith(" ") for line in text.stdout.splitlines() if "→" not in line and "  " not in line.strip()
    )
    assert run(*drain, "--detailed-exitcode").returncode == 2
    assert run(*drain, "--fail-on", "pdb").returncode == 3
    assert run(*drain, "--fail-on", "pending").returncode == 0
    assert run("--snapshot", file, "--detailed-exitcode").returncode == 0
    assert run(*drain, "-o", "markdown").stdout.startswith(
        "### ❌ kcm plan: 2 problems: 1 node is not drained, 1 eviction is blocked by a disruption budget"
    )
    assert run(*drain, "-o", "yaml").stdout.startswith("apiVersion: plan.kcm.dev/v1\nkind: Plan\n")


def test_json_is_the_same_bytes_whatever_the_hash_seed(file: str) -> None:
    words = ("--snapshot", file, "--scale", "sim/deploy/web=8", "--drain", "node-2", "--for", "5m", "-o", "json")
    one, other = (run(*words, env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2"))
    assert one == other != ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--drain", "node-9"), 'Error: nodes "node-9" not found'),
        (("--scale", "web=3"), 'Error: --scale: "web" is not KIND/NAME'),
        (("--scale", "deploy/web=x"), 'Error: --scale: "deploy/web=x" is not KIND/NAME=REPLICAS'),
        (("--output", "xml"), 'Error: --output: "xml" is not one of text, json, yaml, markdown, html'),
        (("--fail-on", "rain"), 'Error: --fail-on: "rain" is not one of '),
        (("--for", "-1h"), "Error: --for: look ahead by more than nothing"),
        (("--seeds", "0"), "Error: --seeds: 0 is not between 1 and 1000"),
        (("--drian", "x"), "Error: unknown flag: --drian (did you mean --drain?)"),
        (("-f", "/does/not/exist.yaml"), "Error: cannot read /does/not/exist.yaml: No such file or directory"),
        (("--include", "configmaps"), "Error: --include: a snapshot file is as it was saved"),
        (("--controllers", "nope"), 'Error: "nope" is not in the list of known controllers (kcm --help lists them)'),
        (("--flags-from", "/nope"), "Error: --flags-from: cannot read /nope: No such file or directory"),
        (("-l", "a=b=c"), "Error: --selector: "),
    ],
)
def test_invalid_input_is_one_clear_line(
    file: str, words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str], own_log_level: None
) -> None:
    assert main(["--snapshot", file, *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(text), err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("words", [("--snapshot", "/nope.kcm"), ("--kubeconfig", "/nope")])
def test_unreadable_files_are_one_clear_line(words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "/nope" in done.stderr


def test_an_unreadable_cluster_is_named_with_its_kubeconfig(
    start_sandbox: Callable[..., Sandbox], tmp_path: Path
) -> None:
    sandbox = start_sandbox("--nodes", "0", "--no-manager")
    document = yaml.safe_load(sandbox.kubeconfig.read_text())
    config = tmp_path / "config"
    document["users"][0]["user"] = {"token": "expired"}
    config.write_text(yaml.safe_dump(document))
    refused = run(f"--kubeconfig={config}")
    assert (refused.returncode, refused.stderr) == (1, f"Error: kubeconfig {config}: Unauthorized\n")
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{free_port()}"
    config.write_text(yaml.safe_dump(document))
    unreachable = run(env={"KUBECONFIG": str(config)})
    assert unreachable.returncode == 1
    assert unreachable.stderr.startswith(f"Error: kubeconfig {config}: GET https://127.0.0.1:")


def test_help_names_every_flag() -> None:
    text = run("--help").stdout
    for flag in ("filename", "drain", "fail-node", "remove-node", "add-node", "set-image", "scale", "delete", "metric"):
        assert f"--{flag} " in text
    for flag in ("flags-from", "controllers", "for", "seeds", "save", "snapshot", "include", "output", "fail-on"):
        assert f"--{flag} " in text


def test_a_plan_beside_what_happened(start_sandbox: Callable[..., Sandbox], tmp_path: Path) -> None:
    sandbox = start_sandbox("--nodes", "1")
    deployments = f"{sandbox.url}/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    body = {"metadata": {"name": "web"}, "spec": spec}
    account = f"{sandbox.url}/api/v1/namespaces/default/serviceaccounts/default"
    until(lambda: ask(account, token=sandbox.token).status == 200)
    assert ask(deployments, token=sandbox.token, method="POST", body=body).status == 201

    def ready() -> int:
        return int(ask(f"{deployments}/web", token=sandbox.token).doc["status"].get("readyReplicas", 0))

    until(lambda: ready() == 2)
    cluster, file = ("--kubeconfig", str(sandbox.kubeconfig)), tmp_path / "plan.json"
    planned = run(*cluster, "--scale", "deploy/web=3", "-o", "json")
    assert planned.returncode == 0, planned.stderr
    file.write_text(planned.stdout)
    before = run(*cluster, "--compare", str(file))
    assert (before.returncode, before.stderr) == (2, "") and "Nothing of the plan has begun" in before.stdout
    scale = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 3}}
    assert ask(f"{deployments}/web/scale", token=sandbox.token, method="PUT", body=scale).status == 200
    until(lambda: ready() == 3)
    until(lambda: run(*cluster, "--compare", str(file)).returncode == 0)
    after = run(*cluster, "--compare", str(file), "-o", "json")
    found = json.loads(after.stdout)
    assert found["kind"] == "Comparison" and {step["state"] for step in found["steps"]} == {"happened"}
    assert ask(f"{deployments}/web", token=sandbox.token, method="DELETE").status == 200
    until(lambda: run(*cluster, "--compare", str(file)).returncode == 3)
    file.write_text(planned.stdout[:-20])
    broken = run(*cluster, "--compare", str(file))
    assert broken.returncode == 1 and broken.stderr.count("\n") == 1 and "cut short" in broken.stderr
