"""The API server of a sandbox: store, TLS, kubeconfig. ``cluster.sandbox`` has what is around it.

``stop`` releases everything, however far the start came. The files for a manager (its kubeconfig, root CA, service
account key, signing CA) are written to the data directory, or to a private temporary one.
"""

import contextlib
import os
import random
import tempfile
from collections.abc import Iterable
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec.structs import replace

from kcm_cli.api.well_known import AUTHENTICATED, MASTERS
from kcm_cli.component import key_pairs
from kcm_cli.component.client_certificates import credential
from kcm_cli.component.clock import Clock, RealClock
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox import kubeconfig
from kcm_cli.sandbox.apiserver.controllers.bootstrap import create_missing
from kcm_cli.sandbox.apiserver.controllers.ca_injection import CaInjection
from kcm_cli.sandbox.apiserver.entrance import Observer
from kcm_cli.sandbox.apiserver.entry.audit_log import AuditLog, AuditOptions
from kcm_cli.sandbox.apiserver.entry.fault import Fault
from kcm_cli.sandbox.apiserver.http.server import HttpServer, tls_context
from kcm_cli.sandbox.apiserver.security.bootstrap import bootstrap_objects
from kcm_cli.sandbox.apiserver.security.certificates import LOOPBACK, Certificates, Keys
from kcm_cli.sandbox.apiserver.settings import DEFAULTS, Settings
from kcm_cli.sandbox.apiserver.store import SqliteJournal, Store
from kcm_cli.sandbox.apiserver.types import Tree, User
from kcm_cli.sandbox.apiserver.webhooks.routes import service_of
from kcm_cli.sandbox.assembly import Server, assemble
from kcm_cli.sandbox.networks import ADVERTISED
from kcm_cli.sandbox.nodes import HEARTBEAT_S
from kcm_cli.sandbox.probes import healthz
from kcm_cli.sandbox.system_pods import system_objects
from kcm_cli.sandbox.views import SERVICES
from kcm_cli.serving.listening import listening

if TYPE_CHECKING:
    from kcm_cli.sandbox.nodes.rules import Rule

ADMIN = User("admin", "admin", (MASTERS,))
"""The user of the administrator's token."""
SIMULATION = User("system:kcm-sandbox", groups=(MASTERS, AUTHENTICATED))
"""The user of what is simulated and has no name of its own in a cluster: storage, and what all kubelets share."""
SCHEDULER = User("system:kube-scheduler", groups=SIMULATION.groups)
MANAGER_GROUPS = (MASTERS,)
"""The manager's groups. Without --use-service-account-credentials it may do everything, as in most clusters."""
MANAGER = User("system:kube-controller-manager", groups=(*MANAGER_GROUPS, AUTHENTICATED))
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}
STOP_S = 1.0
"""How long running requests may continue after ``stop``."""


class SandboxOptions(msgspec.Struct, frozen=True):
    """The options of ``kcm sandbox``. ``kubeconfig``: by default a file in the data directory, or in a private one.

    routes: Services as ``name.namespace``, each with ``PORT`` or ``HOST:PORT`` (``webhooks.routes``). settings: those
    of the API server. keys: used instead of generated ones. system_pods: whether kube-system has what kubeadm runs in
    it. audit: None for no audit log.
    """

    port: int = 6443
    bind_address: str = "127.0.0.1"
    token: str = ""
    kubeconfig: str = ""
    data_dir: str = ""
    nodes: int = 3
    manager: bool = True
    heartbeat_s: float = HEARTBEAT_S
    routes: tuple[tuple[str, str], ...] = ()
    settings: Settings = DEFAULTS
    keys: Keys = Keys()
    faults: tuple[Fault, ...] = ()
    rules: "tuple[Rule, ...]" = ()
    system_pods: bool = False
    audit: AuditOptions | None = None


class NoFolderError(Exception):
    """There is no folder for the files of a cluster. The text says what to do."""

    def __init__(self, error: OSError) -> None:
        where = f" in {error.filename}" if error.filename else ""
        super().__init__(f"no temporary folder can be made{where}: {error.strerror} (TMPDIR names where)")


class ManagerFiles(msgspec.Struct, frozen=True):
    """The files for a manager's flags. ``user``: the identity in the kubeconfig."""

    user: User
    kubeconfig: Path
    root_ca: Path
    service_account_key: Path
    signing_certificate: Path
    signing_key: Path


class SandboxServer:
    """Call ``prepare``, ``serve``, then ``stop``; after ``prepare`` it is an async context manager, too."""

    def __init__(self, options: SandboxOptions, clock: Clock | None = None) -> None:
        self.options = options
        self.clock: Clock = clock or RealClock()
        self.api: Server
        self.certificates: Certificates
        self.folder: Path
        """The folder for files of this cluster: the data directory, or a temporary one that is deleted at the end."""
        self.port = options.port
        self.store: Store
        self.rng = random.Random(os.urandom(16))
        self._http: HttpServer | None = None
        self.observers: list[Observer] = []
        """Get each request that is answered. To be added before ``serve``."""
        self._taken = contextlib.ExitStack()

    def prepare(self) -> None:
        """Lock the data directory, bind the port, and create missing certificates and files.

        Raises NoFolderError, DirectoryInUse, OSError, sqlite3.Error, ValueError.
        """
        options, taken = self.options, self._taken
        data = Path(options.data_dir) if options.data_dir else None
        journal = taken.enter_context(contextlib.closing(SqliteJournal(data))) if data else None
        self.store = taken.enter_context(contextlib.closing(Store(journal)))
        # clients can connect once they find the kubeconfig, and no other process takes the port
        self._listener = taken.enter_context(listening(options.bind_address, options.port))
        self.port = self._listener.getsockname()[1]
        service = [str(ip_network(one)[1]) for one in options.settings.service_ranges]
        bound = () if options.bind_address in _ANY else (options.bind_address,)
        addresses = tuple(dict.fromkeys((*LOOPBACK, *service, *bound)))
        self.certificates = Certificates.load(data / "pki" if data else None, self.clock.now(), addresses, options.keys)
        self.folder = data or Path(taken.enter_context(_temporary()))
        if data is None:
            self.certificates.write(self._pki)

    def open_audit_log(self) -> None:
        """Open the audit log, if there is one. Raises OSError."""
        if self.options.audit is not None:
            log = self._taken.enter_context(contextlib.closing(AuditLog(self.options.audit, self.clock)))
            self.observers.append(log.observe)

    async def serve(self) -> None:
        """Serve requests. When this returns, /readyz is ok. Raises ValueError for an invalid route."""
        settings = self.options.settings
        if self.options.token:
            settings = replace(settings, tokens={**settings.tokens, self.options.token: ADMIN})
        address = self.url.removeprefix("https://")
        self.api = assemble(self.store, self.clock, self.rng, self.certificates, address=address, settings=settings)
        self.api.components.probe = healthz
        for observer in self.observers:
            self.api.observe(observer)
        CaInjection(self.api.core, self.certificates.ca.certificate)
        for fault in self.options.faults:
            self.api.faults.add(fault)
        for service, where in self.options.routes:
            self.api.routes.add(service, where)
        ca = self.certificates.ca.certificate.decode()
        today = f"{self.clock.now():%Y-%m-%d}"
        cas = ca + settings.client_cas.decode(errors="replace")
        first = bootstrap_objects(
            client_ca=cas,
            proxies=settings.proxies,
            address=str(ADVERTISED),
            port=self.port,
            service_ranges=settings.service_ranges,
            today=today,
        )
        await self.api.bootstrap(first)
        if self.options.system_pods:
            await create_missing(self.api, system_objects(settings.service_ranges, _cluster_ips(self.store)))
        proxies = settings.proxies
        self._http = HttpServer(self.api.handle, self.clock, apart=() if proxies is None else proxies.headers.prefixes)
        named = settings.client_cas + (b"" if proxies is None else b"\n" + proxies.cas)
        await self._http.start([self._listener], tls_context(self.certificates, named))

    async def __aenter__(self) -> Self:
        await self.serve()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop within about a second. May be called twice."""
        http, self._http = self._http, None
        with self._taken:
            if http is not None:
                await http.stop(STOP_S)

    @property
    def url(self) -> str:
        host = self.options.bind_address
        if host in _ANY:
            host = _ANY[host]
        return f"https://{host_and_port(host, self.port)}"

    @property
    def kubeconfig(self) -> Path:
        """The path of the administrator's kubeconfig."""
        given = self.options.kubeconfig
        return (Path(given) if given else self.folder / "kubeconfig").absolute()

    def write_kubeconfig(self) -> None:
        """Write the administrator's kubeconfig, merged into an existing file. Raises OSError, ValueError."""
        token = self.options.token
        user: Doc = {"token": token} if token else kubeconfig.identity(self.certificates.admin)
        kubeconfig.join(self.kubeconfig, self._document(kubeconfig.CLUSTER, user))

    def write_user_kubeconfig(self, path: Path, user: str, token: str, namespace: str = "") -> None:
        """Write a kubeconfig for a user with a bearer token. ``namespace``: that of the context. Raises OSError."""
        doc: Any = self._document(user, {"token": token})
        if namespace:
            doc["contexts"][0]["context"]["namespace"] = namespace
        kubeconfig.write(path, doc)

    @property
    def webhook_certificates(self) -> Path:
        """The folder in which ``kcm sandbox`` puts the certificates for its routes."""
        return (self.folder / "webhooks").absolute()

    def write_webhook_certificates(self, folder: Path, services: Iterable[str]) -> None:
        """Write tls.crt, tls.key and ca.crt into a folder, for a webhook server behind these Services
        (``name.namespace``) and localhost. Raises OSError, ValueError."""
        names = [f"{name}.{namespace}.svc" for namespace, name in map(service_of, services)]
        self.certificates.write_server(folder, *names, "localhost", "127.0.0.1", "::1")

    def manager_files(self) -> ManagerFiles:
        """The files for a manager of this cluster."""
        path = self._pki / "controller-manager.kubeconfig"
        pair = self.certificates.client(MANAGER.name, MANAGER_GROUPS)
        kubeconfig.write(path, self._document("kube-controller-manager", kubeconfig.identity(pair)))
        return ManagerFiles(
            user=replace(MANAGER, extra=credential(key_pairs.chain(pair.certificate)[0])),
            kubeconfig=path,
            root_ca=self._pki / "ca.crt",
            service_account_key=self._pki / "sa.key",
            signing_certificate=self._pki / "ca.crt",
            signing_key=self._pki / "ca.key",
        )

    @property
    def _pki(self) -> Path:
        return self.folder / "pki"

    def _document(self, name: str, user: Doc) -> Doc:
        return kubeconfig.document(name, self.url, self.certificates.ca.certificate, user)


def _cluster_ips(store: Store) -> set[str]:
    """The addresses that Services have."""
    docs: list[Tree] = [stored.doc for stored in store.list(SERVICES.gvr)]
    return {address for doc in docs for address in doc["spec"].get("clusterIPs") or ()}


def _temporary() -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="kcm-sandbox-", ignore_cleanup_errors=True)
    except OSError as error:
        raise NoFolderError(error) from None
