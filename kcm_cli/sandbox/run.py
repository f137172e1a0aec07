"""Starts and stops a sandbox: store, API server, TLS, kubeconfig.

What the manager in it needs (root CA, service account key, signing CA) is put as files into the data directory, or
into a private temporary one. The manager itself is started by ``cli``: the sandbox knows nothing of controllers.
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
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.assembly import Security
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.server import ApiServer, Parts
from kcm_cli.sandbox.apiserver.store import SqliteJournal, Store
from kcm_cli.sandbox.apiserver.types import User

ADMIN = User("admin", "admin", ("system:masters",))
"""Whose the token is."""
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


class Sandbox:
    """A running API server. ``start``, then ``stop`` once. Raises OSError, DirectoryInUse on start."""

    def __init__(self, options: SandboxOptions, clock: Clock | None = None) -> None:
        self.options = options
        self.clock: Clock = clock or LoopClock()
        self._private = ""
        self.api: ApiServer
        self.certificates: Certificates
        self.port = options.port
        self._store: Store
        self._http: HttpServer

    async def start(self) -> None:
        """Serve. When this returns, /readyz answers ok."""
        options = self.options
        data = Path(options.data_dir) if options.data_dir else None
        self._store = Store(SqliteJournal(data) if data else None)
        listener = _bound(options.bind_address, options.port)
        self.port = listener.getsockname()[1]
        self.certificates = Certificates.load(data / "pki" if data else None, self.clock.now())
        self.pki = self._pki(data)
        rng = random.Random()
        security = Security.assemble(
            self._store,
            self.clock,
            rng,
            self.certificates,
            tokens={options.token: ADMIN} if options.token else {},
            address=f"{options.bind_address}:{self.port}",
        )
        schemas = Schemas()
        admission = Admission(self._store, self.clock, rng, security.authorizer)
        parts = Parts(self._store, self.clock, rng, security, schemas, admission)
        self.api = ApiServer(parts)
        await self.api.bootstrap(bootstrap_objects(client_ca=self.certificates.ca.certificate.decode()))
        self._http = HttpServer(self.api.handle, self.clock)
        await self._http.start([listener], tls_context(self.certificates))

    async def stop(self) -> None:
        """End within a second or so."""
        await self._http.stop(STOP_S)
        self._store.close()
        if self._private:
            shutil.rmtree(self._private, ignore_errors=True)

    @property
    def url(self) -> str:
        host = self.options.bind_address
        if host in ("0.0.0.0", "::"):
            host = "127.0.0.1"
        return f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"

    def kubeconfig(self) -> bytes:
        """The administrator's kubeconfig."""
        user: dict[str, str] = {
            "client-certificate-data": _base64(self.certificates.admin.certificate),
            "client-key-data": _base64(self.certificates.admin.key),
        }
        if self.options.token:
            user = {"token": self.options.token}
        cluster = {"server": self.url, "certificate-authority-data": _base64(self.certificates.ca.certificate)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kcm-sandbox", "cluster": cluster}],
            "users": [{"name": "kcm-sandbox-admin", "user": user}],
            "contexts": [{"name": "kcm-sandbox", "context": {"cluster": "kcm-sandbox", "user": "kcm-sandbox-admin"}}],
            "current-context": "kcm-sandbox",
        }
        return yaml.safe_dump(document, sort_keys=False).encode()

    def write_kubeconfig(self, path: Path) -> None:
        """Write the administrator's kubeconfig, readable by its owner alone."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(self.kubeconfig())

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


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
