"""``kcm sandbox assets`` as envtest uses it: processes, their readiness, their end; a Go suite where there is one.

KCM_ENVTEST_SUITE names tests/e2e/envtest compiled with ``go test -c`` (CONTRIBUTING.md says how).
"""

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.processes import END_S, KCM, Processes, ask, free_port, until

FLAGS = "KCM_SANDBOX_FLAGS"
pytestmark = pytest.mark.e2e
SUITE = Path(__file__).with_name("envtest")


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("assets")
    done = subprocess.run([*KCM, "sandbox", "assets", "--dir", str(target)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{target}\n"
    return target


@pytest.fixture
def processes() -> Iterator[Processes]:
    with Processes() as found:
        yield found


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200 and answer.read() == b'{"health":"true","reason":""}')
    except urllib.error.URLError:
        return False


def test_etcd_is_healthy_until_it_is_stopped(assets: Path, processes: Processes, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    child = processes.start(
        str(assets / "etcd"),
        f"--advertise-client-urls={url}",
        f"--data-dir={tmp_path}",
        f"--listen-client-urls={url}",
        "--listen-peer-urls",
        "http://127.0.0.1:0",
        "--unsafe-no-fsync=true",
    )
    until(lambda: healthy(f"{url}/health"), 10)
    assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    assert child.wait(END_S) == 0


@pytest.mark.parametrize("argument", ["word", "--listen-client-urls=https://127.0.0.1:1", "--cert-file=a", "--name"])
def test_errors_of_etcd_are_one_line(assets: Path, argument: str) -> None:
    done = subprocess.run([assets / "etcd", argument], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_an_api_server_with_the_certificates_of_envtest(assets: Path, processes: Processes, tmp_path: Path) -> None:
    """Its client certificates, its serving certificate; Deployments run; it ends by SIGTERM."""
    keys = Certificates.load(tmp_path / "theirs", datetime.now(UTC))
    served = tmp_path / "certs"
    keys.write_pair(served, "apiserver", keys.server("localhost", "127.0.0.1"))
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    child = processes.start(
        "env",
        f"{FLAGS}=--nodes 3",
        str(assets / "kube-apiserver"),
        "--etcd-servers=http://127.0.0.1:1",
        f"--cert-dir={served}",
        f"--secure-port={port}",
        f"--client-ca-file={tmp_path}/theirs/ca.crt",
        f"--service-account-signing-key-file={tmp_path}/theirs/sa.key",
        f"--service-account-key-file={tmp_path}/theirs/sa.key",
        f"--service-account-issuer={url}/",
        "--disable-admission-plugins=ServiceAccount",
        "--service-cluster-ip-range=10.0.0.0/24",
    )
    until(lambda: ask(f"{url}/healthz").status == 200, 90)
    mine = (tmp_path / "theirs" / "admin.crt", tmp_path / "theirs" / "admin.key")
    assert ask(f"{url}/api/v1/secrets").status == 403
    assert ask(f"{url}/api/v1/secrets", pair=mine).status == 200
    service = ask(f"{url}/api/v1/namespaces/default/services/kubernetes", pair=mine).doc
    assert service["spec"]["clusterIP"] == "10.0.0.1"
    container = {"name": "c", "image": "nginx"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    body = {"metadata": {"name": "web"}, "spec": spec}
    path = f"{url}/apis/apps/v1/namespaces/default/deployments"
    assert ask(path, method="POST", body=body, pair=mine).status == 201
    until(lambda: ask(f"{path}/web", pair=mine).doc.get("status", {}).get("readyReplicas") == 2, 90)
    child.send_signal(signal.SIGTERM)
    assert child.wait(END_S) == 0


@pytest.mark.skipif("KCM_ENVTEST_SUITE" not in os.environ, reason="no Go suite: KCM_ENVTEST_SUITE names none")
def test_a_suite_in_go(assets: Path) -> None:
    environ = {**os.environ, "KUBEBUILDER_ASSETS": str(assets), "CONTROLLERS": "1", FLAGS: "--nodes 3"}
    done = subprocess.run(
        [os.environ["KCM_ENVTEST_SUITE"], "-test.v"],
        cwd=SUITE,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("--- PASS: ") == 6
