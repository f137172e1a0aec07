"""The secure server: its handlers, its authentication and authorization, and its sockets.

The constructor does everything that may fail (binding, certificates, CA files) before anything else starts. ``serve``
runs on the control thread's loop. What answers requests (uvicorn, starlette, the pages) is loaded on a thread when the
first client connects, or when the manager has started: the controllers need not wait for it. Where no more threads
can start, it is loaded on the loop.
"""

import asyncio
import contextlib
import logging
import os
import random
import socket
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from kcm_cli.component.auth_config import AuthenticationConfig, AuthorizationConfig
from kcm_cli.component.clock import Clock
from kcm_cli.component.serving_config import INSECURE_CIPHERS, ServingConfig
from kcm_cli.machinery.addresses import host_and_port
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.server.authentication import Authenticator
from kcm_cli.manager.server.authorization import Authorizer
from kcm_cli.manager.server.ciphers import curve
from kcm_cli.manager.server.cluster_trust import ClusterTrust
from kcm_cli.manager.server.listener import listen
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.review import ACCESS_REVIEWS, TOKEN_REVIEWS, Reviewer, review_token
from kcm_cli.manager.server.self_signed import PairInMemory, kept_pair, renew
from kcm_cli.manager.server.tls import ServingTls, Source
from kcm_cli.manager.server.tokens import TokenCache
from kcm_cli.manager.server.trust import Trust, TrustState, from_files
from kcm_cli.rest.client import Client
from kcm_cli.runtime.loads import CLIENT_CA_FILE, PROXY_CA_FILE, SERVING, SERVING_FILES, Loads

if TYPE_CHECKING:
    from kcm_cli.manager.server.http import HttpServer
    from kcm_cli.manager.server.mux import Mux

T = TypeVar("T")
log = logging.getLogger(__name__)

PAIR_NAME = "kube-controller-manager"
LOAD_S = 5.0
"""Without a client, what answers requests is loaded so long after the start: not from files of a later installation."""
_RELOAD_S = 1.0


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of the server.

    certificate_uids: whether a uid in a client certificate is the user's uid.
    """

    serving: ServingConfig
    authentication: AuthenticationConfig
    authorization: AuthorizationConfig
    certificate_uids: bool = True


class Delegates(msgspec.Struct, frozen=True):
    """Clients, used on the server's loop only, for TokenReviews and SubjectAccessReviews."""

    authentication: Client | None = None
    authorization: Client | None = None


async def _on_thread(function: Callable[[], T]) -> T:
    """The result of a function, which is called on a thread, or on the loop where no thread can start."""
    once = cache(function)  # an executor without threads keeps the call, for a thread that it may start later
    try:
        return await asyncio.to_thread(once)
    except RuntimeError:
        return once()


class Server:
    """Bound sockets and loaded certificates, ready to serve."""

    def __init__(
        self,
        config: ServerConfig,
        pages: "Callable[[], Mux]",
        metrics: AuthMetrics,
        clock: Clock,
        loads: Loads | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        """Raises RunError if the port cannot be bound, or a certificate is invalid.

        pages: called once, on a thread, when the first client connects.
        listener: a socket that is already bound to the secure port.
        """
        self._config = config
        self._pages = pages
        self._metrics = metrics
        self._clock = clock
        self._loads = loads or Loads(clock)
        since = self._loads.now()
        state, problems = from_files(config.authentication)
        if problems:
            raise RunError(problems[0])
        self._trust = Trust(state)
        self._trusted(TrustState(), since)
        self._http: HttpServer | None = None
        self._kept: tuple[Path, Path] | None = None
        self._stopped, self._wanted = asyncio.Event(), asyncio.Event()
        self._sockets: list[socket.socket] = [listener] if listener is not None else []
        try:
            self._secure = listener or self._listen(config.serving.bind_address, config.serving.port)
            self._tls = self._load_tls() if self._secure is not None else None
            self._certified(since)
        except RunError:
            self.close()
            raise

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses that it listens on; empty with --secure-port=0."""
        return [sock.getsockname()[:2] for sock in self._sockets]

    def close(self) -> None:
        """Close the sockets."""
        for sock in self._sockets:
            sock.close()

    async def serve(self, delegates: Delegates, rng: random.Random) -> None:
        """Serve until ``stop``. Raises RunError if the cluster's authentication settings cannot be read."""
        authenticator, authorizer = self._authenticator(delegates, rng), self._authorizer(delegates, rng)
        async with asyncio.TaskGroup() as group:
            background = [group.create_task(self._reload(), name="certificates")]
            cluster = self._cluster_trust(delegates, rng)
            if cluster is not None:
                background.append(group.create_task(cluster.follow(), name="cluster authentication"))
            for address, port in self.addresses:
                log.info("Serving", extra={"fields": {"address": host_and_port(address, port)}})
            try:
                if self._secure is not None and self._tls is not None:
                    await self._until_wanted(self._secure)
                    if not self._stopped.is_set():
                        made = partial(self._http_server, self._secure, self._tls, authenticator, authorizer)
                        self._http = await _on_thread(made)
                    if self._http is not None and not self._stopped.is_set():  # it may have been stopped meanwhile
                        await self._http.serve()
                await self._stopped.wait()
            finally:
                for task in background:
                    task.cancel()
                self.close()

    async def _until_wanted(self, sock: socket.socket) -> None:
        """Wait for the first client, for ``stop``, or for LOAD_S. A client is in the socket's backlog meanwhile."""
        loop = asyncio.get_running_loop()
        loop.add_reader(sock, self._wanted.set)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOAD_S):
                    await self._wanted.wait()
        finally:
            loop.remove_reader(sock)

    def _http_server(
        self, sock: socket.socket, tls: ServingTls, authenticator: Authenticator, authorizer: Authorizer
    ) -> "HttpServer":
        # imported here: see the module
        from kcm_cli.manager.server.http import Endpoint, HttpServer, application

        app = application(self._pages(), authenticator, authorizer, self._clock, self._metrics)
        return HttpServer(Endpoint(sock, app, tls.context), self._clock)

    def _authenticator(self, delegates: Delegates, rng: random.Random) -> Authenticator:
        return Authenticator(
            self._trust,
            self._tokens(delegates, rng),
            self._clock,
            self._metrics,
            certificate_uids=self._config.certificate_uids,
        )

    def _tokens(self, delegates: Delegates, rng: random.Random) -> TokenCache | None:
        client = delegates.authentication
        if client is None:
            return None
        reviewer = Reviewer(client, TOKEN_REVIEWS, "TokenReview", self._metrics.token_reviews, self._clock, rng)
        ttl_s = self._config.authentication.token_cache_ttl_s
        return TokenCache(
            lambda token: review_token(reviewer, token), ttl_s, os.urandom(32), self._clock, self._metrics.token_cache
        )

    def _authorizer(self, delegates: Delegates, rng: random.Random) -> Authorizer:
        client, config = delegates.authorization, self._config.authorization
        if client is None:
            log.warning(
                "No authorization-kubeconfig provided, so SubjectAccessReview of authorization tokens won't work."
            )
            return Authorizer(config, None, self._clock)
        metrics = self._metrics.access_reviews
        reviewer = Reviewer(client, ACCESS_REVIEWS, "SubjectAccessReview", metrics, self._clock, rng)
        return Authorizer(config, reviewer, self._clock)

    def _cluster_trust(self, delegates: Delegates, rng: random.Random) -> ClusterTrust | None:
        config = self._config.authentication
        needed = not (config.client_ca_file and config.requestheader_client_ca_file)
        if config.skip_lookup or not needed or self._secure is None:
            return None
        if delegates.authentication is None:
            log.warning(
                "No authentication-kubeconfig provided in order to lookup the client CAs in the cluster, so client "
                "certificate authentication won't work beyond the given CA files."
            )
            return None
        return ClusterTrust(config, delegates.authentication, self._trust, self._clock, rng, self._loads)

    async def stop(self) -> None:
        """Let ``serve`` end. Call it on the server's loop."""
        self._stopped.set()
        self._wanted.set()
        if self._http is not None:
            self._http.stop()

    async def _reload(self) -> None:
        said = ""
        while True:
            await self._clock.sleep(_RELOAD_S)
            why = self._reload_once()
            if why and why != said:
                log.error("Could not reload certificates, keeping the previous ones", extra={"fields": {"err": why}})
            said = why

    def _reload_once(self) -> str:
        """Load changed files. Returns the error as text; empty without one."""
        since, known = self._loads.now(), self._trust.state
        problems: list[str] = []
        if self._tls is not None:
            problems += self._renewed()
            changed, more = self._tls.refresh()
            problems += more
            if changed:
                log.info("Reloaded the serving certificates")
                self._certified(since)
        state, more = from_files(self._config.authentication, known)
        self._trust.replace(state)
        self._trusted(known, since)
        return "; ".join((*problems, *more))

    def _renewed(self) -> list[str]:
        """Renew the pair of --cert-dir if it was made here and has expired. Returns the error as text."""
        try:
            if self._kept is not None:
                renew(*self._kept, self._config.serving.bind_address, self._clock.now())
        except RunError as error:
            return [str(error)]
        return []

    def _certified(self, since: float) -> None:
        if self._config.serving.cert_file:
            self._loads.loaded(SERVING_FILES, since)
        if self._tls is not None:
            self._loads.loaded(SERVING, since)

    def _trusted(self, known: TrustState, since: float) -> None:
        """Count CA files that have changed."""
        config, state = self._config.authentication, self._trust.state
        if config.client_ca_file and state.clients != known.clients:
            self._loads.loaded(CLIENT_CA_FILE, since)
        if config.requestheader_client_ca_file and state.proxies != known.proxies:
            self._loads.loaded(PROXY_CA_FILE, since)

    def _listen(self, address: str, port: int) -> socket.socket | None:
        if port == 0:
            return None
        sock = listen(address, port, share_port=self._config.serving.permit_port_sharing)
        self._sockets.append(sock)
        return sock

    def _load_tls(self) -> ServingTls:
        config = self._config.serving
        for name in config.cipher_suites:
            if name in INSECURE_CIPHERS:
                log.warning("Use of insecure cipher detected", extra={"fields": {"cipher": name}})
        if config.curve_preferences and curve(config.curve_preferences) is None:
            log.warning(
                "tls-curve-preferences takes effect with a single curve (P-256, P-384 or P-521) only, the library's "
                "choice stays"
            )
        named = tuple(Source(Path(one.cert_file), Path(one.key_file), names=one.names) for one in config.sni_cert_keys)
        return ServingTls(config, (self._default_certificate(), *named), self._trust)

    def _default_certificate(self) -> Source:
        config = self._config.serving
        if config.cert_file and config.key_file:
            return Source(Path(config.cert_file), Path(config.key_file))
        if config.cert_dir:
            self._kept = kept_pair(config.cert_dir, PAIR_NAME, config.bind_address, self._clock.now())
            return Source(*self._kept)
        log.info("Generated self-signed cert in-memory")
        return Source(pair=PairInMemory(config.bind_address, self._clock))
