"""The recorded behaviour on a real kube-apiserver, where KUBEBUILDER_ASSETS names a folder with one and etcd."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.e2e.test_recorded import GOLDEN_FLAGS, judge, known, run
from tests.processes import KCM, Processes, ask, free_port, until
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
    with Processes() as below, Processes() as processes:  # the API server does not end without its etcd
        below.start(*etcd, log=folder / "etcd.log")
        processes.start(*api, log=folder / "log")
        until(lambda: ask(f"{url}/readyz", token=TOKEN).status == 200, 90, why=lambda: _tail(folder / "log"))
        (folder / "kubeconfig").write_text(KUBECONFIG.format(url=url, token=TOKEN))
        yield url, folder


def _tail(log: Path) -> str:
    return log.read_text()[-4000:]


def test_controllers_behave_as_recorded_on_a_real_server(shared: Path, server: tuple[str, Path]) -> None:
    url, folder = server
    files = ("root-ca-file=ca.crt", "service-account-private-key-file=sa.key")
    files += ("cluster-signing-cert-file=ca.crt", "cluster-signing-key-file=ca.key")
    flags = [f"--{flag}={folder}/{name}" for flag, name in (pair.split("=") for pair in files)]
    command = [*KCM, f"--kubeconfig={folder}/kubeconfig", "--secure-port=0"]
    with Processes() as processes:
        processes.start(*command, *GOLDEN_FLAGS, *flags, "--use-service-account-credentials", log=folder / "kcm.log")
        passed, failed, text = run(shared / "golden", url, TOKEN, "--jobs", "8", "--patience", "2")
    judge(passed, failed, known("golden"), text)
    assert '" cannot ' not in (folder / "kcm.log").read_text()
