"""The files in configs/: flags, metrics and roles that they name exist."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml

from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.workqueue import WorkqueueCollector
from kcm_cli.manager.config import complete
from kcm_cli.manager.observability import Observability
from kcm_cli.manager.options import flag_set
from kcm_cli.runtime.loop_monitor import LoopMonitor
from tests.kit.places import ROOT
from tests.kit.simulation import World, simulate
from tests.kit.units import CONFIGS, GROUPS, unit_flags

PROCESS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"}
"""Of Go's own collectors."""
YAML = sorted(path for path in CONFIGS.rglob("*.yaml"))


@pytest.mark.parametrize("path", YAML, ids=[path.name for path in YAML])
def test_files_are_yaml(path: Path) -> None:
    assert list(yaml.safe_load_all(path.read_text()))


def test_groups_have_every_controller_once_and_a_lease_each() -> None:
    configs = [complete(flag_set().parse(unit_flags(group))) for group in ("", *GROUPS)]
    whole, *parts = (set(config.controllers) for config in configs)
    assert set.union(*parts) == whole
    assert sum(map(len, parts)) == len(whole)
    assert len({config.component.generic.leader_election.resource_name for config in configs}) == 1 + len(GROUPS)
    assert len({config.serving.port for config in configs[1:]}) == len(GROUPS)


def test_the_units_flags_are_the_pods_with_its_credentials() -> None:
    unit = (CONFIGS / "systemd" / "kcm.service").read_text()
    flags = "\n".join(unit_flags())
    for name, path in re.findall(r"^LoadCredential=(\S+?):(\S+)$", unit, re.MULTILINE):
        assert f"${{CREDENTIALS_DIRECTORY}}/{name}" in flags
        flags = flags.replace(f"${{CREDENTIALS_DIRECTORY}}/{name}", path)
    pod = yaml.safe_load((CONFIGS / "kubernetes" / "static-pod.yaml").read_text())
    assert flags.split("\n") == pod["spec"]["containers"][0]["args"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    unit = (CONFIGS / "systemd" / "kcm.service").read_text()
    (tmp_path / "kcm.service").write_text(unit.replace("/opt/kcm/bin/kcm", sys.executable))
    words = ("systemd-analyze", "verify", "--man=no", str(tmp_path / "kcm.service"))
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in done.stderr.splitlines() if "kcm.service" in line]  # the machine's own units may be wrong
    assert (done.returncode, said) == (0, [])


def test_the_pods_flags_are_taken_and_its_volumes_are_there() -> None:
    pod = yaml.safe_load((CONFIGS / "kubernetes" / "static-pod.yaml").read_text())
    container = pod["spec"]["containers"][0]
    config = complete(flag_set().parse(container["args"]))
    assert config.serving.port == container["ports"][0]["containerPort"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes


ALERTS = yaml.safe_load((CONFIGS / "prometheus" / "alerts.yaml").read_text())


def test_alerts_say_what_is_wrong() -> None:
    rules = ALERTS["groups"][0]["rules"]
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)


def test_an_informer_that_stalls_is_reported_however_many_of_its_kind_do() -> None:
    """The metric is a number of informers: Secrets and ConfigMaps have several."""
    (rule,) = (rule for rule in ALERTS["groups"][0]["rules"] if rule["alert"] == "KcmInformerStalled")
    assert rule["expr"] == 'kcm_informer_stalled{job="kube-controller-manager"} > 0'


@pytest.mark.parametrize(("pod", "target"), [("10.0.0.1", "10.0.0.1:10257"), ("fd00::1", "[fd00::1]:10257")])
def test_pods_are_scraped_at_addresses_of_either_family(pod: str, target: str) -> None:
    for job in yaml.safe_load((CONFIGS / "prometheus" / "scrape.yaml").read_text())["scrape_configs"]:
        found = [
            rule["replacement"].replace("$1", match[1])
            for rule in job["relabel_configs"]
            if rule["target_label"] == "__address__" and (match := re.fullmatch(rule["regex"], pod))
        ]
        assert found == [target]


WORDS = re.compile(r"\b((?:kcm|workqueue|rest_client|leader_election|node_collector|process|kubernetes)_[a-z_]+)\b")
UPSTREAM = ROOT / "tests" / "recorded" / "reference" / "metrics.json"


@cache
def kcms() -> frozenset[str]:
    """The metrics of a manager that runs all controllers for a minute, and of its port."""
    registry = Registry()

    async def story(world: World) -> None:
        world.manager(metrics=registry)
        await world.clock.sleep(60)

    simulate(1, story)
    shown = Observability(complete(flag_set().parse([])), LoopClock())
    LoopMonitor(LoopClock(), shown.registry)
    WorkqueueCollector(registry).queue("x", lambda: 0.0)
    exposed = (registry, shown.registry, shown.slis)
    types = re.findall(r"# TYPE (\S+)", "".join(one.expose().decode() for one in exposed))
    return frozenset({*types, *(family.description.name for one in exposed for family in one.families())})


@pytest.mark.parametrize("path", ["grafana/dashboard.json", "prometheus/alerts.yaml"])
def test_dashboards_and_alerts_name_metrics_of_both_managers(path: str) -> None:
    """kcm has each of them, and the original all but those that begin with kcm_."""
    named = {name.removesuffix("_bucket") for name in WORDS.findall((CONFIGS / path).read_text())}
    upstream = {one["name"] for one in json.loads(UPSTREAM.read_text())}
    assert len(named) > 9
    assert named - kcms() - {"leader_election_master_status"} == set()
    assert {name for name in named if not name.startswith("kcm_")} - upstream - PROCESS == set()


def test_the_dashboard_is_whole() -> None:
    board = json.loads((CONFIGS / "grafana" / "dashboard.json").read_text())
    panels = [one for one in board["panels"] if one["type"] != "row"]
    assert len({one["id"] for one in board["panels"]}) == len(board["panels"])
    assert all(target["expr"].count("(") == target["expr"].count(")") for one in panels for target in one["targets"])
    variables = {one["name"] for one in board["templating"]["list"]} | {"__rate_interval", "job"}
    used = {name for one in panels for target in one["targets"] for name in re.findall(r"\$(\w+)", target["expr"])}
    assert used <= variables
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in board["panels"]]
    assert len(set(places)) == len(places)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_prometheus_reads_the_rules_and_the_dashboard(tmp_path: Path) -> None:
    board = json.loads((CONFIGS / "grafana" / "dashboard.json").read_text())
    exprs = [target["expr"] for one in board["panels"] for target in one.get("targets", ())]
    rules = [
        {"record": f"panel:{number}", "expr": expr.replace("$__rate_interval", "5m").replace("$job", "x")}
        for number, expr in enumerate(exprs)
    ]
    (tmp_path / "panels.yaml").write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    files = [str(CONFIGS / "prometheus" / "alerts.yaml"), str(tmp_path / "panels.yaml")]
    done = subprocess.run(
        ["promtool", "check", "rules", *files], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_the_first_object_that_cannot_be_decoded_is_an_alert(tmp_path: Path) -> None:
    """And the second one, two hours later; each for an hour."""
    name, labels = "KcmUndecodableObject", {"job": "kube-controller-manager", "resource": "pods"}
    (rule,) = [one for one in ALERTS["groups"][0]["rules"] if one["alert"] == name]
    said = {key: text.replace("{{ $labels.resource }}", "pods") for key, text in rule["annotations"].items()}
    alert = {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": said}
    series = "kcm_undecodable_objects_total{job='kube-controller-manager',resource='pods'}"
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": "_x5 1x120 2x120"}],
        "alert_rule_test": [
            {"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": [alert] * count}
            for minutes, count in ((4, 0), (10, 1), (60, 1), (100, 0), (140, 1), (220, 0))
        ],
    }
    rules = [str(CONFIGS / "prometheus" / "alerts.yaml")]
    (tmp_path / "test.yaml").write_text(json.dumps({"rule_files": rules, "tests": [test]}))
    words = ["promtool", "test", "rules", str(tmp_path / "test.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_a_workflow_uses_actions_by_commit_and_targets_that_exist(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and [one for one in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", one)] == []
    matrices = [job.get("strategy", {}).get("matrix", {}) for job in workflow["jobs"].values()]
    targets = {one for matrix in matrices for one in matrix.get("target", ())}
    targets |= {more["target"] for matrix in matrices for more in matrix.get("include", ())}
    targets |= set(re.findall(r"\bmake ([a-z-]+)", "\n".join(step.get("run", "") for step in steps)))
    rules = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets and targets <= rules


@pytest.mark.parametrize("path", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_a_job_that_may_write_runs_no_packages(path: Path) -> None:
    """Whatever the tests install could sign and publish otherwise."""
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        if "write" in job.get("permissions", {}).values():
            used = {step["uses"].partition("@")[0] for step in job["steps"] if "uses" in step}
            assert used <= {"actions/download-artifact", "actions/attest"}
            assert all(step["run"].startswith("gh release create ") for step in job["steps"] if "run" in step)


def test_each_python_of_the_package_is_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    named = [one.rpartition(" ")[2] for one in classifiers if one.startswith("Programming Language :: Python :: 3.")]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named


@pytest.mark.parametrize("path", ["container/Containerfile", "example-operator/Containerfile"])
def test_images_are_made_of_images_by_digest(path: str) -> None:
    text = (CONFIGS / path).read_text()
    given = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
    bases = [
        re.sub(r"\$\{(\w+)\}", lambda found: given[found[1]], one) for one in re.findall(r"^FROM (\S+)", text, re.M)
    ]
    assert bases and all(re.fullmatch(r"\S+:[\w.-]+@sha256:[0-9a-f]{64}", base) for base in bases)


def test_the_image_has_the_tested_versions() -> None:
    pin = re.compile(r"^([A-Za-z0-9_.-]+==\S+)", re.MULTILINE)
    everything = set(pin.findall((CONFIGS / "requirements.lock").read_text()))
    runtime = (CONFIGS / "runtime.lock").read_text()
    assert len(pin.findall(runtime)) > 20
    assert set(pin.findall(runtime)) <= everything
    assert "://" not in runtime


def test_the_images_build_has_the_files_that_it_copies() -> None:
    container = CONFIGS / "container"
    context = [line[1:] for line in (container / "Containerfile.dockerignore").read_text().split() if line[0] == "!"]
    copies = re.findall(r"^COPY (?!--from)(.+) \S+$", (container / "Containerfile").read_text(), re.MULTILINE)
    sources = [source for line in copies for source in line.split()]
    assert {"kcm_cli", "configs/build", "configs/man"} < set(sources)
    assert all(source in context and list(ROOT.glob(source)) for source in sources)
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*included["packages"], *included["shared-data"]} < set(sources)
