"""Connections to the API server: for the controllers' loop, and for the loop of the server and the elections.

A transport belongs to the loop on which it was created, so each loop creates its own.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import RestClientMetrics
from kcm_cli.manager.config import Config
from kcm_cli.manager.server.server import Delegates
from kcm_cli.rest import access as accesses
from kcm_cli.rest.access import Access
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.builder import Clients, ClientSettings, RootClients, ServiceAccountClients
from kcm_cli.rest.client import Client
from kcm_cli.rest.credentials import ANONYMOUS
from kcm_cli.rest.errors import NotInCluster
from kcm_cli.rest.metrics import SessionMetrics
from kcm_cli.rest.ratelimit import Unlimited, limiter
from kcm_cli.rest.session import Session
from kcm_cli.rest.transport import Transport
from kcm_cli.runtime.leader.fence import Fenced

_REVIEW_QPS, _REVIEW_BURST = 200.0, 400
Dial = Callable[[Access, Clock, SessionMetrics], Transport]
"""Opens a way to an API server, on the controllers' loop."""


class Connections(msgspec.Struct, frozen=True):
    """The controllers' clients. ``controllers``: with --use-service-account-credentials, one user for each.

    ca_data: the CA of the API server (PEM), if the kubeconfig contains it (certificate-authority-data).
    """

    root: RootClients
    controllers: Clients
    transports: tuple[Transport, ...]
    ca_data: bytes = b""

    async def close(self) -> None:
        """Close all connections."""
        for transport in self.transports:
            await transport.close()


def check(config: Config) -> None:
    """Check that the API server's address is known, without a connection. Raises AccessError."""
    accesses.check(path=config.component.generic.client_connection.kubeconfig, master=config.master)


async def connect(
    config: Config,
    clock: Clock,
    metrics: RestClientMetrics,
    safe: Callable[[], bool] | None,
    dial: Dial = Session,
) -> Connections:
    """Create the controllers' clients. ``safe``: whether writes may be sent (None: always). Raises AccessError."""
    access = await _access(config, clock, metrics)
    ca_data = access.tls.ca_data if access.tls is not None else b""
    observed = metrics.host(host_of(access))
    settings = _settings(config)
    session = _dialed(dial, access, clock, metrics)
    root = RootClients(Authorized(_fenced(session, safe), access.credentials), settings, clock, observed)
    if not config.component.kube_cloud_shared.use_service_account_credentials:
        return Connections(root, root, (session,), ca_data)
    without_credentials = _dialed(dial, anonymous(access), clock, metrics)
    core = root.client("token-requests")
    accounts = ServiceAccountClients(core, _fenced(without_credentials, safe), settings, clock, observed)
    return Connections(root, accounts, (session, without_credentials), ca_data)


async def election_client(config: Config, clock: Clock, metrics: RestClientMetrics) -> Client:
    """Create the election's client, which --kube-api-qps does not limit. Raises AccessError."""
    access = await _access(config, clock, metrics)
    return _single(access, _settings(config).user_agent("leader-election"), clock, metrics, -1.0, 1)


async def delegates(config: Config, clock: Clock, metrics: RestClientMetrics) -> Delegates:
    """Create the clients for TokenReviews and SubjectAccessReviews. Raises AccessError for an invalid kubeconfig."""
    authentication = await _delegate(config, config.authentication.kubeconfig, clock, metrics)
    if config.authorization.kubeconfig == config.authentication.kubeconfig:
        return Delegates(authentication, authentication)
    return Delegates(authentication, await _delegate(config, config.authorization.kubeconfig, clock, metrics))


def anonymous(access: Access) -> Access:
    """The same server, without credentials."""
    tls = access.tls.anonymous if access.tls is not None else None
    return replace(access, tls=tls, credentials=ANONYMOUS, certificate=lambda: None, impersonation=())


def host_of(access: Access) -> str:
    """``10.0.0.1:6443``: the value of the label ``host``."""
    return urlsplit(access.server).netloc


async def _access(config: Config, clock: Clock, metrics: RestClientMetrics) -> Access:
    path = config.component.generic.client_connection.kubeconfig
    return await accesses.load(path=path, master=config.master, clock=clock, metrics=metrics.exec_plugin)


def _dialed(dial: Dial, access: Access, clock: Clock, metrics: RestClientMetrics) -> Transport:
    transport = dial(access, clock, metrics.transport)
    metrics.transport.opened(transport)
    return transport


async def _delegate(config: Config, path: str, clock: Clock, metrics: RestClientMetrics) -> Client | None:
    try:
        access = await accesses.load(path=path, master="", clock=clock, metrics=metrics.exec_plugin)
    except NotInCluster:
        if path:
            raise
        return None
    name = _settings(config).user_agent("delegated-authentication")
    return _single(access, name, clock, metrics, _REVIEW_QPS, _REVIEW_BURST)


def _single(
    access: Access, user_agent: str, clock: Clock, metrics: RestClientMetrics, qps: float, burst: int
) -> Client:
    return Client(
        Authorized(_dialed(Session, access, clock, metrics), access.credentials),
        limiter=Unlimited() if qps < 0 else limiter(qps, burst),
        user_agent=user_agent,
        clock=clock,
        metrics=metrics.host(host_of(access)),
    )


def _fenced(transport: Transport, safe: Callable[[], bool] | None) -> Transport:
    return transport if safe is None else Fenced(transport, safe)


def _settings(config: Config) -> ClientSettings:
    connection = config.component.generic.client_connection
    return ClientSettings(connection.qps, connection.burst, connection.protobuf)
