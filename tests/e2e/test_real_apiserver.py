"""The recorded behaviour on a real kube-apiserver, where KUBEBUILDER_ASSETS names a folder with one and etcd."""

import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.e2e.test_recorded import GOLDEN_FLAGS, judge, known, run
from tests.simulation.world import EPOCH

ASSETS = os.environ.get("KUBEBUILDER_ASSETS", "")
TOKEN = "admin-token"
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver"),
]
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}", insecure-skip-tls-verify: true}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A real API server: its address, and the folder with its keys."""
    folder = tmp_path_factory.mktemp("real")
    Certificates.load(None, EPOCH).write(folder)
    (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
    port, client, peer = free_port(), free_port(), free_port()
    etcd = [f"{ASSETS}/etcd", f"--data-dir={folder}/etcd", f"--listen-client-urls=http://127.0.0.1:{client}"]
    etcd += [f"--advertise-client-urls=http://127.0.0.1:{client}", f"--listen-peer-urls=http://127.0.0.1:{peer}"]
    api = [
        f"{ASSETS}/kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{client}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={folder}/serving",
        f"--token-auth-file={folder}/tokens.csv",
        f"--service-account-key-file={folder}/sa.key",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.0.0.0/16",
        "--authorization-mode=RBAC",
        f"--client-ca-file={folder}/ca.crt",
        "--allow-privileged=true",
    ]
    url = f"https://127.0.0.1:{port}"
    with (folder / "log").open("wb") as log:
        running = [subprocess.Popen(words, stdout=log, stderr=log) for words in (etcd, api)]
        try:
            _wait(url, folder)
            (folder / "kubeconfig").write_text(KUBECONFIG.format(url=url, token=TOKEN))
            yield url, folder
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(30)


def _wait(url: str, folder: Path) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(f"{url}/readyz", headers={"authorization": f"Bearer {TOKEN}"})
    deadline = time.monotonic() + 90
    while True:
        try:
            urllib.request.urlopen(request, context=context, timeout=2).close()
            return
        except (OSError, urllib.error.URLError):
            assert time.monotonic() < deadline, (folder / "log").read_text()[-4000:]
            time.sleep(0.2)


def test_controllers_behave_as_recorded_on_a_real_server(shared: Path, server: tuple[str, Path]) -> None:
    url, folder = server
    files = ("root-ca-file=ca.crt", "service-account-private-key-file=sa.key")
    flags = [f"--{flag}={folder}/{name}" for flag, name in (pair.split("=") for pair in files)]
    command = [sys.executable, "-m", "kcm_cli.cli.main", f"--kubeconfig={folder}/kubeconfig", "--secure-port=0"]
    command += [*GOLDEN_FLAGS, *flags, "--use-service-account-credentials"]
    with (folder / "kcm.log").open("wb") as log:
        manager = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        passed, failed, text = run(shared / "golden", url, TOKEN, "--jobs", "8", "--patience", "2")
    finally:
        manager.terminate()
        manager.wait(30)
    judge(passed, failed, known("golden"), text)
    assert '" cannot ' not in (folder / "kcm.log").read_text()
