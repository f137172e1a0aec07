"""The manager and the sandbox under the limits of configs/systemd/kcm.service (see ``tests.kit.confined``)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.confined import SKIP
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.simulation import EPOCH
from tests.kit.units import unit_flags

pytestmark = pytest.mark.e2e
REPLICAS = "/apis/apps/v1/namespaces/default/replicasets"
TOKEN = "tok"


def confined(folder: Path) -> tuple[str, ...]:
    """The words before a command. The folder is the only one that it can write to."""
    words = (sys.executable, "-m", "tests.kit.confined", str(folder))
    done = subprocess.run((*words, sys.executable, "-c", ""), capture_output=True, text=True, timeout=60)
    if done.returncode == SKIP:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr
    return words


def test_the_units_command_serves_under_its_limits(tmp_path: Path) -> None:
    """Both programs are confined; the manager has the unit's flags. A Deployment gets its ReplicaSet."""
    port, own = free_port(), free_port()
    url, pki, kubeconfig = f"https://127.0.0.1:{port}", tmp_path / "pki", tmp_path / "controller-manager.conf"
    pki.mkdir()
    (tmp_path / "tmp").mkdir()
    certificates = Certificates.load(None, EPOCH)
    certificates.write(pki)
    (pki / "front-proxy-ca.crt").write_bytes(certificates.ca.certificate)
    words = ["--port", str(port), "--token", TOKEN, "--kubeconfig", str(kubeconfig), "--nodes", "0", "--no-manager"]
    flags = [
        flag.replace("${CREDENTIALS_DIRECTORY}/controller-manager.conf", str(kubeconfig))
        .replace("${CREDENTIALS_DIRECTORY}", str(pki))
        .replace("/etc/kubernetes/pki", str(pki))
        for flag in unit_flags()
    ]
    with Processes() as below, Processes() as processes:
        below.start(*confined(tmp_path), *KCM, "sandbox", *words, log=tmp_path / "sandbox.log")
        until(lambda: ask(f"{url}/healthz", token=TOKEN).status == 200, why=(tmp_path / "sandbox.log").read_text)
        command = (*confined(tmp_path / "tmp"), *KCM, *flags, f"--secure-port={own}")
        processes.start(*command, log=tmp_path / "manager.log")
        until(lambda: ask(f"https://127.0.0.1:{own}/healthz").text == "ok", why=(tmp_path / "manager.log").read_text)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        body = {"metadata": {"name": "web"}, "spec": spec}
        path = f"{url}/apis/apps/v1/namespaces/default/deployments"
        assert ask(path, token=TOKEN, method="POST", body=body).status == 201
        until(
            lambda: json.loads(ask(url + REPLICAS, token=TOKEN).text)["items"], why=(tmp_path / "manager.log").read_text
        )
    log = (tmp_path / "manager.log").read_text()
    assert "Traceback" not in log
    assert not [line for line in log.splitlines() if line.startswith("E")]
