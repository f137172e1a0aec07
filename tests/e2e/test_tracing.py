"""Spans of a manager's process, at a collector that speaks OTLP over gRPC, and where there is none."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from tests.kit.collector import Collector, attributes, collecting
from tests.kit.places import ROOT
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.servers import TOKEN, kubeconfig, real_server

pytestmark = pytest.mark.e2e
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
_REAL = bool(ASSETS) and (Path(ASSETS) / "kube-apiserver").exists()
WITHOUT = (
    "import sys; sys.modules['opentelemetry'] = None; from kcm_cli.cli.main import main; sys.exit(main({words!r}))"
)


@dataclass
class Sandbox:
    process: "subprocess.Popen[bytes]"
    url: str
    manager: str
    log: Path
    token: str = "tok"

    def deploy(self, replicas: int) -> None:
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        body = {"metadata": {"name": "web"}, "spec": spec}
        assert ask(self.url + DEPLOYMENTS, token=self.token, method="POST", body=body).status == 201

    def ready(self) -> int:
        return int(ask(f"{self.url}{DEPLOYMENTS}/web", token="tok").doc["status"].get("readyReplicas", 0))

    def count(self, result: str) -> float:
        text = ask(f"{self.manager}/metrics", token="tok").text
        (line,) = [one for one in text.splitlines() if one.startswith(f'kcm_trace_spans_total{{result="{result}"}}')]
        return float(line.rpartition(" ")[2])

    def lines(self, word: str) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if word in line]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Sandbox]]:
    """Starts a sandbox whose manager has these flags."""
    with Processes() as processes:

        def make(*flags: str, program: tuple[str, ...] = KCM) -> Sandbox:
            api, port, log = free_port(), free_port(), tmp_path / "log"
            words = ["sandbox", "--port", str(api), "--token", "tok", "--kubeconfig", str(tmp_path / "kc"), "--no-view"]
            words += ["--", f"--secure-port={port}", *flags]
            command = (sys.executable, "-c", WITHOUT.format(words=words)) if program is not KCM else (*KCM, *words)
            process = processes.start(*command, log=log)
            made = Sandbox(process, f"https://127.0.0.1:{api}", f"https://127.0.0.1:{port}", log)
            account = f"{made.url}/api/v1/namespaces/default/serviceaccounts/default"
            until(lambda: ask(account, token="tok").status == 200, why=log.read_text)
            return made

        yield make


def configured(folder: Path, endpoint: str) -> str:
    file = folder / "tracing.yaml"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
    file.write_text(json.dumps({**kind, "endpoint": endpoint, "samplingRatePerMillion": 1_000_000}))
    return f"--tracing-config-file={file}"


def assert_a_rollout(collector: Collector) -> None:
    """From the Deployment to its pods, in one trace."""
    applied = collector.only("Deployment created")
    pods = collector.named("create pods")
    by_id = {span.span_id: span for span in collector.spans}
    above = pods[0]
    path = [above.name]
    while above.parent_span_id:
        above = by_id[above.parent_span_id]
        path.append(above.name)
    assert above == applied and path == [
        "create pods",
        "replicaset-controller sync",
        "create replicasets",
        "deployment-controller sync",
        "Deployment created",
    ]
    assert {pod.trace_id for pod in pods} == {applied.trace_id}
    assert {attributes(pod)["kcm.reason"] for pod in pods} == {"too few replicas"}
    assert collector.by >= {"kube-controller-manager"}


def test_spans_arrive_and_the_last_ones_before_the_end(tmp_path: Path, start: Callable[..., Sandbox]) -> None:
    with collecting() as collector:
        sandbox = start(configured(tmp_path, f"127.0.0.1:{collector.port}"))
        sandbox.deploy(2)
        until(lambda: sandbox.ready() == 2)
        sandbox.process.terminate()
        assert sandbox.process.wait(60) == 0
        assert_a_rollout(collector)
        linked = {link.span_id for span in collector.spans for link in span.links}
        assert linked and linked <= {span.span_id for span in collector.spans}


def test_an_unreachable_collector_costs_counted_spans(tmp_path: Path, start: Callable[..., Sandbox]) -> None:
    sandbox = start(configured(tmp_path, f"127.0.0.1:{free_port()}"))
    sandbox.deploy(2)
    until(lambda: sandbox.ready() == 2)
    until(lambda: sandbox.count("failed") > 0)
    assert sandbox.count("exported") == 0
    (line,) = sandbox.lines("Failed to export traces")
    assert "UNAVAILABLE" in line
    began = time.monotonic()
    sandbox.process.terminate()
    assert sandbox.process.wait(60) == 0
    assert time.monotonic() - began < 30
    assert sandbox.lines("Spans were not exported")


def test_without_the_extra_a_manager_runs_and_says_what_spans_need(
    tmp_path: Path, start: Callable[..., Sandbox]
) -> None:
    sandbox = start(program=())
    assert ask(f"{sandbox.manager}/healthz").status == 200
    words = ["--master=https://127.0.0.1:1", configured(tmp_path, "127.0.0.1:4317")]
    command = [sys.executable, "-c", WITHOUT.format(words=words)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    (line,) = [one for one in run.stderr.splitlines() if "command failed" in one]
    assert run.returncode == 1 and "pip install 'kcm-cli[otel]'" in line and "Traceback" not in run.stderr


@pytest.mark.skipif(not _REAL, reason="KUBEBUILDER_ASSETS has no kube-apiserver")
@pytest.mark.parametrize("masters", [True, False])
def test_spans_of_a_real_api_server_join(tmp_path: Path, masters: bool) -> None:
    """Its spans are below those of a client in system:masters; those of another one's requests are linked."""
    with collecting() as collector, Processes() as processes:
        flag, log = configured(tmp_path, f"127.0.0.1:{collector.port}"), tmp_path / "manager"
        with real_server(Path(ASSETS), tmp_path, flag) as url:
            (tmp_path / "kubeconfig").write_text(kubeconfig(url))
            words = [f"--kubeconfig={tmp_path}/kubeconfig", "--secure-port=0", "--leader-elect=false", flag]
            words += [f"--service-account-private-key-file={tmp_path}/sa.key", f"--root-ca-file={tmp_path}/ca.crt"]
            manager = processes.start(*KCM, *words, f"--use-service-account-credentials={not masters}", log=log)
            account = f"{url}/api/v1/namespaces/default/serviceaccounts/default"
            until(lambda: ask(account, token=TOKEN).status == 200, why=log.read_text)
            Sandbox(manager, url, "", log, TOKEN).deploy(2)
            until(lambda: len(collector.named("create pods")) == 2, why=log.read_text)
            manager.terminate()
            assert manager.wait(60) == 0
            assert_a_rollout(collector)
            sent = {span.span_id: span for span in collector.named("create pods")}
            name = "POST /api/v1/namespaces/{:namespace}/pods"
            until(lambda: len(collector.named(name)) == 2, why=log.read_text)
            for handled in collector.named(name):
                above = handled if masters else handled.links[0]
                write = sent.pop(handled.parent_span_id if masters else handled.links[0].span_id)
                assert above.trace_id == write.trace_id and (handled.trace_id == write.trace_id) is masters
            assert collector.by == {"kube-controller-manager", "apiserver"}
