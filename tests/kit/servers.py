"""API servers for tests, each in its own process: a real kube-apiserver with etcd, and a sandbox without a manager."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.processes import KCM, Processes, ask, free_port, until
from tests.kit.simulation import EPOCH

TOKEN = "admin-token"
MANAGER_TOKEN = "manager-token"
"""Of system:kube-controller-manager, on a real server: the identity of kubeadm's controller-manager.conf."""
READY_S = 300
_KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}", insecure-skip-tls-verify: {insecure}}}}}]
users: [{{name: u, user: {{token: {token}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def kubeconfig(url: str, token: str = TOKEN) -> str:
    """The kubeconfig of the administrator, or of who has the token, for a server at this URL, whose certificate is not
    verified."""
    return _KUBECONFIG.format(url=url, token=token, insecure=str(url.startswith("https:")).lower())


@dataclass
class RealServer:
    """A kube-apiserver that can be killed and started again, on an etcd that stays."""

    url: str
    words: list[str]
    log: Path
    processes: Processes

    def start(self) -> None:
        """Until it is ready."""
        self.processes.start(*self.words, log=self.log)
        _ready(self.url, self.log)

    def kill(self) -> None:
        """kill -9."""
        process = self.processes.running.pop()
        process.kill()
        process.wait()


@contextmanager
def real_server(assets: Path, folder: Path, *flags: str) -> Iterator[str]:
    """The URL of a kube-apiserver on an etcd of its own. ``assets``: the folder of both programs; ``folder`` gets
    the keys of a cluster (ca.crt, sa.key, ...); ``flags``: more of kube-apiserver's."""
    with restartable_server(assets, folder, *flags) as server:
        yield server.url


@contextmanager
def restartable_server(assets: Path, folder: Path, *flags: str) -> Iterator[RealServer]:
    """The same, to be killed."""
    Certificates.load(None, EPOCH).write(folder)
    users = f'{TOKEN},admin,admin,"system:masters"\n{MANAGER_TOKEN},system:kube-controller-manager,manager\n'
    (folder / "tokens.csv").write_text(users)
    port, client, peer = free_port(), free_port(), free_port()
    with Processes() as below, Processes() as processes:  # the API server does not end without its etcd
        below.start(*_etcd(assets, folder, client, peer), log=folder / "etcd.log")
        words = [*_api_server(assets, folder, port, client), *flags]
        server = RealServer(f"https://127.0.0.1:{port}", words, folder / "log", processes)
        server.start()
        yield server


_CONTROLLERS_ONLY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [get, list, watch]
  - level: None
    resources: [{group: "", resources: [events]}, {group: events.k8s.io}, {group: coordination.k8s.io}]
  - level: RequestResponse
    userGroups: ["system:serviceaccounts:kube-system"]
  - level: None
"""
"""A policy of audit: the writes of the controllers of kube-system."""


@contextmanager
def real_cluster(
    assets: Path,
    *flags: str,
    policy: str = _CONTROLLERS_ONLY,
    program: tuple[str, ...] = (),
    server: tuple[str, ...] = (),
) -> Iterator[tuple[str, Path, Path]]:
    """A real API server with a manager on it: its URL, a folder with a ``kubeconfig``, and the audit log. The manager's
    log is ``manager.log`` in the folder; ``flags``: more of its flags; ``policy``: of the audit log; ``program``: the
    manager, Go's unless given; ``server``: more flags of the API server."""
    with tempfile.TemporaryDirectory(prefix="kcm-record-") as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(policy)
        audit = folder / "audit.log"
        options = [
            f"--audit-policy-file={folder}/policy.yaml",
            f"--audit-log-path={audit}",
            "--audit-log-mode=blocking",
        ]
        with real_server(assets, folder, *options, *server) as url, Processes() as processes:
            (folder / "kubeconfig").write_text(kubeconfig(url))
            config = f"{folder}/kubeconfig"
            manager = program or (f"{assets}/kube-controller-manager",)
            words = [*manager, f"--kubeconfig={config}", "--use-service-account-credentials"]
            words += [f"--authentication-kubeconfig={config}", f"--authorization-kubeconfig={config}"]
            words += [f"--service-account-private-key-file={folder}/sa.key", f"--root-ca-file={folder}/ca.crt"]
            words += [f"--cluster-signing-cert-file={folder}/ca.crt", f"--cluster-signing-key-file={folder}/ca.key"]
            words += ["--leader-elect=false", f"--secure-port={free_port()}", f"--cert-dir={folder}/manager"]
            words += ["--kube-api-qps=500", "--kube-api-burst=1000"]
            processes.start(*words, *flags, log=folder / "manager.log")
            yield url, folder, audit


@contextmanager
def sandbox_server(folder: Path, *flags: str) -> Iterator[str]:
    """The URL of a sandbox that has neither nodes nor a manager; ``flags``: more of its options."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    options = ["--nodes=0", "--no-manager", f"--port={port}", f"--token={TOKEN}", f"--kubeconfig={folder}/sandbox"]
    with Processes() as processes:
        processes.start(*KCM, "sandbox", *options, *flags, log=folder / "sandbox.log")
        _ready(url, folder / "sandbox.log")
        yield url


def _etcd(assets: Path, folder: Path, client: int, peer: int) -> list[str]:
    return [
        f"{assets}/etcd",
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
    ]


def _api_server(assets: Path, folder: Path, port: int, etcd: int) -> list[str]:
    return [
        f"{assets}/kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{etcd}",
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


def _ready(url: str, log: Path) -> None:
    until(lambda: ask(f"{url}/readyz", token=TOKEN).status == 200, READY_S, why=lambda: log.read_text()[-4000:])
