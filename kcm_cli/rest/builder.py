"""Clients by name: the manager's own, and one for each controller.

With service accounts (--use-service-account-credentials) a controller's client is the service account of its name
in kube-system, made if it is missing; its token is asked for at the first request and again when four fifths of
its lifetime have passed. All these clients share one transport, which shows no client certificate: the server
would take that for the user and not look at the token.

Every client has its own rate limit, as in client-go, and is made once per name.

upstream: staging/src/k8s.io/controller-manager/pkg/clientbuilder
"""

import logging
from typing import Protocol

import msgspec

from kcm_cli.api.core import NAMESPACES, SERVICE_ACCOUNTS
from kcm_cli.component.clock import Clock
from kcm_cli.component.version import GIT_VERSION, go_platform
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import View
from kcm_cli.machinery.times import parse_time
from kcm_cli.rest.authorized import Authorized
from kcm_cli.rest.client import Client
from kcm_cli.rest.credentials import Credential, Renewing, bearer
from kcm_cli.rest.errors import AlreadyExists, ApiError, CredentialsError, NotFound
from kcm_cli.rest.metrics import NO_METRICS, RequestMetrics
from kcm_cli.rest.ratelimit import limiter
from kcm_cli.rest.transport import Request, RequestError, Transport, Unreadable

log = logging.getLogger(__name__)

DISCOVERY_QPS, DISCOVERY_BURST = 20.0, 200
TOKEN_LIFETIME_S = 3600
NAMESPACE = "kube-system"
_SHORTEST_LIFETIME_S = 600.0
_USED_SHARE = 0.8
_RETRY_DELAYS_S = (0.5, 1.0, 2.0)


class ClientSettings(msgspec.Struct, frozen=True):
    """Settings of all clients of a process. ``qps``: below zero for no limit. ``protobuf``: of lists and watches, for
    kinds that have it."""

    qps: float = 20.0
    burst: int = 30
    protobuf: bool = False
    command: str = "kube-controller-manager"
    version: str = GIT_VERSION
    commit: str = "unknown"

    def user_agent(self, name: str) -> str:
        """``kube-controller-manager/v1.36.2 (linux/amd64) kubernetes/unknown/NAME``.

        The command is kube-controller-manager's: API servers take the name of the field manager from it, and a
        drop-in must not show up as another owner of fields.
        """
        return f"{self.command}/{self.version} ({go_platform()}) kubernetes/{self.commit}/{name}"


class Clients(Protocol):
    """Hands out clients. Making one does no I/O."""

    def client(self, name: str) -> Client:
        """The client of a controller or component."""


class RootClients:
    """Clients that are all the same user and differ in their user agent."""

    def __init__(
        self, transport: Transport, settings: ClientSettings, clock: Clock, metrics: RequestMetrics = NO_METRICS
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._clients: dict[str, Client] = {}

    def client(self, name: str) -> Client:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = self._make(name, self._settings.qps, self._settings.burst)
        return client

    def discovery_client(self, name: str) -> Client:
        """A client for bursts of discovery requests, with a limit of its own."""
        return self._make(name, DISCOVERY_QPS, DISCOVERY_BURST)

    def _make(self, name: str, qps: float, burst: int) -> Client:
        return Client(
            self._transport,
            limiter=limiter(qps, burst),
            user_agent=self._settings.user_agent(name),
            clock=self._clock,
            metrics=self._metrics,
            protobuf=self._settings.protobuf,
        )


class ServiceAccountClients:
    """A service account for each client. ``core`` creates accounts and tokens; ``transport`` is anonymous."""

    def __init__(
        self,
        core: Client,
        transport: Transport,
        settings: ClientSettings,
        clock: Clock,
        metrics: RequestMetrics = NO_METRICS,
    ) -> None:
        self._core = core
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._clients: dict[str, Client] = {}

    def client(self, name: str) -> Client:
        client = self._clients.get(name)
        if client is None:
            source = TokenSource(self._core, NAMESPACE, name, self._clock)
            transport = Authorized(self._transport, Renewing(source.credential, self._clock))
            user = RootClients(transport, self._settings, self._clock, self._metrics)
            client = self._clients[name] = user.client(f"system:serviceaccount:{NAMESPACE}:{name}")
        return client


class _Spec(View, frozen=True, gc=False):
    expiration_seconds: int | None = None


class _Status(View, frozen=True, gc=False):
    token: str = ""
    expiration_timestamp: str = ""


class TokenRequest(View, frozen=True, gc=False):
    """authentication.k8s.io/v1 TokenRequest."""

    api_version: str = "authentication.k8s.io/v1"
    kind: str = "TokenRequest"
    spec: _Spec = _Spec()
    status: _Status = _Status()


class TokenSource:
    """Asks for tokens of one service account."""

    def __init__(self, core: Client, namespace: str, name: str, clock: Clock) -> None:
        self._core = core
        self._namespace = namespace
        self._name = name
        self._clock = clock
        path = SERVICE_ACCOUNTS.gvr.path(namespace, name, "token")
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": _ASKED}
        headers = {"content-type": "application/json"}
        self._request = Request("POST", path, (), headers, codec.encode(asked))

    async def credential(self) -> Credential:
        """A new token and for how long to use it. Raises CredentialsError after four attempts."""
        delays = iter(_RETRY_DELAYS_S)
        while True:
            try:
                return await self._ask()
            except (FormatError, RequestError) as error:
                fields = {"serviceaccount": f"{self._namespace}/{self._name}", "err": str(error)}
                log.warning("Cannot get a token", extra={"fields": fields})
                if (delay_s := next(delays, None)) is None:
                    text = f"failed to get token for {self._namespace}/{self._name}: {error}"
                    raise CredentialsError(text) from error
                await self._clock.sleep(delay_s)

    async def _ask(self) -> Credential:
        await ensure_service_account(self._core, self._namespace, self._name)
        status = (await self._core.ask(self._request, TokenRequest)).status
        if not status.token:
            raise Unreadable("the answer cannot be read: there is no token in it")
        left_s = (parse_time(status.expiration_timestamp) - self._clock.now()).total_seconds()
        # Less than that means that the clocks differ, not that the token is short.
        return Credential(bearer(status.token), max(left_s, _SHORTEST_LIFETIME_S) * _USED_SHARE)


_ASKED = {"expirationSeconds": TOKEN_LIFETIME_S}


async def ensure_service_account(client: Client, namespace: str, name: str) -> None:
    """Make a service account, and its namespace, unless they exist. Raises RequestError."""
    try:
        await client.get(SERVICE_ACCOUNTS, namespace, name)
        return
    except NotFound:
        pass
    await _ensure_namespace(client, namespace)
    doc: codec.Doc = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    try:
        await client.create(SERVICE_ACCOUNTS, namespace, doc)
    except AlreadyExists:
        return


async def _ensure_namespace(client: Client, namespace: str) -> None:
    """Failures are logged only: this user may not be allowed to look at namespaces, or to make them."""
    try:
        await client.get(NAMESPACES, "", namespace)
        return
    except NotFound:
        pass
    except ApiError as error:
        log.info("Cannot look a namespace up", extra={"fields": {"namespace": namespace, "err": str(error)}})
        return
    doc: codec.Doc = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    try:
        await client.create(NAMESPACES, "", doc)
    except AlreadyExists:
        return
    except ApiError as error:
        log.warning("Cannot create namespace", extra={"fields": {"namespace": namespace, "err": str(error)}})
