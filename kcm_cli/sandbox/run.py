"""Starts and stops a sandbox: store, API server, TLS, kubeconfig.

What the manager in it needs (its kubeconfig, root CA, service account key, signing CA) is put as files into the data
directory, or into a private temporary one. The manager itself is started by ``cli``: the sandbox knows nothing of
controllers.
"""

import base64
import os
import random
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

import yaml

from kcm_cli.component.clock import Clock, LoopClock
from kcm_cli.sandbox.apiserver.admission import Admission
from kcm_cli.sandbox.apiserver.http.server import HttpServer, tls_context
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import SERVER_ADDRESSES, Certificates, KeyPair
from kcm_cli.sandbox.apiserver.server import ApiServer, Parts
from kcm_cli.sandbox.apiserver.store import SqliteJournal, Store
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.cluster import Cluster, ClusterOptions
from kcm_cli.sandbox.transport import InProcessTransport
from kcm_cli.sandbox.usage.api import MetricsApi

ADMIN = User("admin", "admin", ("system:masters",))
"""Whose the token is."""
SIMULATION = User("system:kcm-sandbox", groups=("system:masters", "system:authenticated"))
"""As whom nodes and scheduler act."""
MANAGER_GROUPS = ("system:masters",)
"""What the manager may do without --use-service-account-credentials: everything, as on most clusters."""
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_ADVERTISED = "192.0.2.1"
"""What the endpoints of the service ``kubernetes`` name: they may not be loopback addresses."""
STOP_S = 1.0
"""How long running requests may go on after the end was asked for."""


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """What ``kcm sandbox`` is told."""

    port: int = 6443
    bind_address: str = "127.0.0.1"
    token: str = ""
    kubeconfig: str = ""
    data_dir: str = ""
    nodes: int = 3
    manager: bool = True


@dataclass(frozen=True, slots=True)
class ManagerFiles:
    """What a manager is told by its flags."""

    kubeconfig: Path
    root_ca: Path
    service_account_key: Path
    signing_certificate: Path
    signing_key: Path


class Sandbox:
    """A running API server: ``prepare``, ``serve``, then ``stop`` once."""

    def __init__(self, options: SandboxOptions, clock: Clock | None = None) -> None:
        self.options = options
        self.clock: Clock = clock or LoopClock()
        self._private = ""
        self._random = random.Random(os.urandom(16))
        self.api: ApiServer
        self.certificates: Certificates
        self.port = options.port
        self._store: Store
        self._listener: socket.socket
        self._http: HttpServer | None = None

    def prepare(self) -> None:
        """Take the data directory and the port, and make what certificates and files are missing.

        Raises DirectoryInUse, OSError, sqlite3.Error, ValueError.
        """
        options = self.options
        data = Path(options.data_dir) if options.data_dir else None
        self._store = Store(SqliteJournal(data) if data else None)
        self._listener = _bound(options.bind_address, options.port)
        self.port = self._listener.getsockname()[1]
        addresses = (*SERVER_ADDRESSES, *(() if options.bind_address in _ANY else (options.bind_address,)))
        self.certificates = Certificates.load(data / "pki" if data else None, self.clock.now(), addresses)
        self.pki = self._pki(data)

    async def serve(self) -> None:
        """Answer requests. When this returns, /readyz answers ok."""
        rng = self._random
        security = Security.assemble(
            self._store,
            self.clock,
            rng,
            self.certificates,
            tokens={self.options.token: ADMIN} if self.options.token else {},
            address=self.url.removeprefix("https://"),
        )
        catalog, schemas = Catalog(), Schemas()
        admission = Admission(self._store, self.clock, rng, security.authorizer, catalog, schemas)
        parts = Parts(self._store, self.clock, rng, security, catalog, schemas, admission)
        self.api = ApiServer(parts)
        ca = self.certificates.ca.certificate.decode()
        await self.api.bootstrap(bootstrap_objects(client_ca=ca, address=_ADVERTISED, port=self.port))
        self._http = HttpServer(self.api.handle, self.clock)
        await self._http.start([self._listener], tls_context(self.certificates))

    async def stop(self) -> None:
        """End within a second or so."""
        if self._http is not None:
            await self._http.stop(STOP_S)
        self._store.close()
        if self._private:
            shutil.rmtree(self._private, ignore_errors=True)

    @property
    def url(self) -> str:
        host = self.options.bind_address
        if host in _ANY:
            host = _ANY[host]
        return f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"

    def cluster(self) -> Cluster:
        """Simulated nodes, their metrics and the scheduler, to be run."""
        self.api.aggregate(MetricsApi(self._store, self.clock))
        transport = InProcessTransport(self.api, SIMULATION)
        return Cluster(transport, self.clock, self._random, ClusterOptions(self.options.nodes))

    def kubeconfig(self) -> bytes:
        """The administrator's kubeconfig."""
        user = {"token": self.options.token} if self.options.token else _identity(self.certificates.admin)
        return self._kubeconfig("kcm-sandbox", user)

    def write_kubeconfig(self, path: Path) -> None:
        """Write the administrator's kubeconfig, readable by its owner alone."""
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_private(path, self.kubeconfig())

    def manager_files(self) -> ManagerFiles:
        """Files for a manager of this cluster."""
        path = self.pki / "controller-manager.kubeconfig"
        identity = _identity(self.certificates.client("system:kube-controller-manager", MANAGER_GROUPS))
        _write_private(path, self._kubeconfig("kube-controller-manager", identity))
        return ManagerFiles(
            kubeconfig=path,
            root_ca=self.pki / "ca.crt",
            service_account_key=self.pki / "sa.key",
            signing_certificate=self.pki / "ca.crt",
            signing_key=self.pki / "ca.key",
        )

    def _kubeconfig(self, name: str, user: dict[str, str]) -> bytes:
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.certificates.ca.certificate)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kcm-sandbox", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "kcm-sandbox", "user": name}}],
            "current-context": name,
        }
        return yaml.safe_dump(document, sort_keys=False).encode()

    def _pki(self, data: Path | None) -> Path:
        if data is not None:
            return data / "pki"
        self._private = tempfile.mkdtemp(prefix="kcm-sandbox-")
        directory = Path(self._private)
        self.certificates.write(directory)
        return directory


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError:
        listener.close()
        raise
    return listener


def _identity(pair: KeyPair) -> dict[str, str]:
    return {"client-certificate-data": _base64(pair.certificate), "client-key-data": _base64(pair.key)}


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
