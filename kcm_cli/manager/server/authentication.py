"""Authenticates requests: a proxy's headers, else a client certificate, else a bearer token, else system:anonymous.

Invalid credentials make a request fail, unless it has other, valid ones. Tokens are ignored if no API server can review
them.

upstream: staging/src/k8s.io/apiserver/pkg/authentication/authenticatorfactory/delegating.go, request/headerrequest
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography import x509

from kcm_cli.component.client_certificates import common_name, identity_of
from kcm_cli.component.clock import Clock
from kcm_cli.component.user_headers import ProxyHeaders
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.review import ReviewError
from kcm_cli.manager.server.tokens import TokenCache, bearer, required
from kcm_cli.manager.server.trust import Trust
from kcm_cli.manager.server.user import ANONYMOUS, AuthenticationError, User
from kcm_cli.rest.ca_bundles import (
    CaBundle,
    readable,
    remaining_s,
)

if TYPE_CHECKING:
    from starlette.datastructures import Headers

_VERDICT_S = 10.0


@dataclass(frozen=True, slots=True)
class Peer:
    """The client certificate of a connection. ``chain``: the certificates that the client sent with it.

    verdicts: for each bundle (by its PEM), why it does not trust the certificate, and until when (monotonic seconds)
    that holds. Verifying a chain takes up to a millisecond of the loop that renews the lease, so it is not done for
    each request.
    """

    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = ()
    verdicts: dict[bytes, tuple[str, float]] = field(default_factory=dict, compare=False)


def parse_peer(der: bytes, chain: tuple[bytes, ...] = ()) -> Peer:
    """Parse a client's certificate. Raises ValueError if it, its names or its extensions are invalid."""
    return Peer(_parsed(der), tuple(_parsed(one) for one in chain))


def _parsed(der: bytes) -> x509.Certificate:
    certificate = x509.load_der_x509_certificate(der)
    readable(certificate)
    return certificate


class Authenticator:
    """Authenticates requests."""

    def __init__(
        self,
        trust: Trust,
        tokens: TokenCache | None,
        clock: Clock,
        metrics: AuthMetrics,
        *,
        certificate_uids: bool = True,
    ) -> None:
        self._trust = trust
        self._tokens = tokens
        self._clock = clock
        self._metrics = metrics
        self._certificate_uids = certificate_uids

    async def user(self, headers: "Headers", peer: Peer | None) -> User:
        """The user of a request; ANONYMOUS without credentials. Raises AuthenticationError."""
        problems: list[str] = []
        user = None
        if peer is not None:
            user = self._by_proxy(headers, peer, problems) or self._by_certificate(peer, problems)
        if user is None:
            user = await self._by_token(headers, problems)
        if user is not None:
            return user.authenticated()
        if problems:
            raise AuthenticationError("; ".join(problems))
        return ANONYMOUS

    def _by_proxy(self, headers: "Headers", peer: Peer, problems: list[str]) -> User | None:
        state = self._trust.state
        if state.proxies is None:
            return None
        why = self._verify_error(state.proxies, peer)
        name = common_name(peer.certificate)
        if not why and state.headers.allowed and name not in state.headers.allowed:
            why = f"x509: subject with cn={name} is not in the allowed list"
        if why:
            problems.append(why)
            return None
        return user_in_headers(headers, state.headers)

    def _by_certificate(self, peer: Peer, problems: list[str]) -> User | None:
        bundle = self._trust.state.clients
        if bundle is None:
            return None
        self._metrics.certificate_expiration.observe(remaining_s(peer.certificate, self._clock.now()))
        why = self._verify_error(bundle, peer)
        if why:
            problems.append(why)
            return None
        try:
            found = identity_of(peer.certificate, with_uid=self._certificate_uids)
        except ValueError as error:
            problems.append(str(error))
            return None
        return None if found is None else User(*found)

    def _verify_error(self, bundle: CaBundle, peer: Peer) -> str:
        """Why the certificate is not trusted; empty if it is."""
        now_s = self._clock.monotonic()
        why, until = peer.verdicts.get(bundle.pem, ("", float("-inf")))
        if now_s >= until:
            why = bundle.verify_error(peer.certificate, peer.chain, self._clock.now())
            peer.verdicts[bundle.pem] = (why, now_s + _VERDICT_S)
        return f"x509: {why}" if why else ""

    async def _by_token(self, headers: "Headers", problems: list[str]) -> User | None:
        token = bearer(headers.get("authorization", ""))
        if self._tokens is None or not token:
            return None
        try:
            return required(await self._tokens.user(token))
        except (AuthenticationError, ReviewError) as error:
            problems.append(str(error))
            return None


def user_in_headers(headers: "Headers", names: ProxyHeaders) -> User | None:
    """The user in the headers of a trusted proxy; None if there is none."""
    found = names.identity(headers.items())
    return None if found is None else User(*found)
