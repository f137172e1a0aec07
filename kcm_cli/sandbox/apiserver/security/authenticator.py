"""Authentication by headers of proxies, client certificates, static tokens and service account tokens.

Requests with invalid credentials are rejected (401), those without credentials are anonymous. An Authorization header
of another scheme than Bearer, or without a token, is ignored.

upstream: apiserver pkg/authentication/{request,group,token}, pkg/kubeapiserver/authenticator
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from msgspec.structs import replace

from kcm_cli.api.well_known import AUTHENTICATED, UNAUTHENTICATED
from kcm_cli.component import key_pairs
from kcm_cli.component.client_certificates import common_name, for_clients, identity_of
from kcm_cli.component.clock import Clock
from kcm_cli.component.tokens import TokenError, unverified_issuer
from kcm_cli.sandbox.apiserver.errors import unauthorized
from kcm_cli.sandbox.apiserver.security.service_accounts import Authenticated, ServiceAccountTokens
from kcm_cli.sandbox.apiserver.settings import Proxies
from kcm_cli.sandbox.apiserver.types import ANONYMOUS, ApiError, User
from kcm_cli.sandbox.streams import websocket

INVALID_TOKEN = "invalid bearer token"

_SPACE_WARNING = "the provided Authorization header contains extra space before the bearer token, and is ignored"
_REMEMBERED_CERTIFICATES = 1024
_UNREADABLE = (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)


Read = TypeVar("Read")


class Verdict(msgspec.Struct, frozen=True):
    """The result for a token: a user, or an error as in TokenReview's status."""

    found: Authenticated | None
    error: str = ""


class Authenticator:
    """See the module. client_cas: PEM bundle of CAs for client certificates."""

    def __init__(
        self,
        clock: Clock,
        accounts: ServiceAccountTokens,
        *,
        tokens: Mapping[str, User],
        client_cas: bytes = b"",
        proxies: Proxies | None = None,
        anonymous: bool = True,
    ) -> None:
        self._accounts = accounts
        self._tokens = {token: _authenticated(user) for token, user in tokens.items()}
        self._anonymous = anonymous
        self._clients = _Certificates(clock, client_cas, _user_of)
        self._proxies = None if proxies is None else (_Certificates(clock, proxies.cas, common_name), proxies.headers)

    def add_token(self, token: str, user: User) -> None:
        """Add a static token of a user."""
        self._tokens[token] = _authenticated(user)

    def authenticate(
        self,
        headers: Mapping[str, str],
        peer_cert_der: bytes | None = None,
        warnings: list[str] | None = None,
    ) -> User:
        """The user of a request. Without a valid certificate the token is used. Header names are in lower case.
        Raises ApiError 401.
        """
        failure: ApiError | None = None
        if peer_cert_der is not None:
            for find in (self._of_proxy, self._of_certificate):
                try:
                    user = find(peer_cert_der, headers)
                except ApiError as error:
                    failure = error
                else:
                    if user is not None:
                        return user
        verdict = self._of_header(_authorization(headers), [] if warnings is None else warnings)
        if verdict is not None and verdict.found is not None:
            return verdict.found.user
        if verdict is not None or failure is not None or not self._anonymous:
            raise unauthorized()
        return ANONYMOUS

    def _of_header(self, header: str | None, warnings: list[str]) -> Verdict | None:
        return self._bearer(header, self._accounts.audiences, warnings) if header else None

    def review(self, token: str, audiences: Sequence[str], warnings: list[str]) -> Verdict:
        """The result of a TokenReview. ``audiences``: the accepted ones; empty for the server's."""
        wanted = audiences or self._accounts.audiences
        verdict = self._bearer(f"Bearer {token}", wanted, warnings)
        return Verdict(Authenticated(ANONYMOUS, tuple(wanted))) if verdict is None else verdict

    def _bearer(self, header: str, audiences: Sequence[str], warnings: list[str]) -> Verdict | None:
        """The result for a header; None if it has no bearer token."""
        scheme, *rest = header.strip().split(" ", 2)
        if not rest or scheme.lower() != "bearer":
            return None
        if not rest[0]:
            if len(rest) == 2:
                warnings.append(_SPACE_WARNING)
            return None
        return self._of_token(rest[0], audiences, warnings)

    def _of_token(self, token: str, audiences: Sequence[str], warnings: list[str]) -> Verdict:
        user = self._tokens.get(token)
        if user is not None:
            common = tuple(each for each in audiences if each in self._accounts.audiences)
            return Verdict(Authenticated(user, common)) if common else Verdict(None, INVALID_TOKEN)
        issuer = unverified_issuer(token)
        if issuer is None:
            return Verdict(None, INVALID_TOKEN)
        try:
            found = self._accounts.authenticate(token, issuer, audiences, warnings)
        except TokenError as error:
            return Verdict(None, f"[{INVALID_TOKEN}, {error}]")
        if found is None:
            return Verdict(None, INVALID_TOKEN)
        return Verdict(Authenticated(_authenticated(found.user), found.audiences))

    # Certificates

    def _of_proxy(self, der: bytes, headers: Mapping[str, str]) -> User | None:
        """The user whom a proxy with this certificate names. Raises ApiError 401 if it may not."""
        if self._proxies is None:
            return None
        certificates, names = self._proxies
        name = certificates.of(der)
        if names.allowed and name not in names.allowed:
            raise unauthorized()
        found = names.identity((key, one) for key, value in headers.items() for one in value.split("\n"))
        return None if found is None else _authenticated(User(*found))

    def _of_certificate(self, der: bytes, _: Mapping[str, str]) -> User | None:
        """The user of a certificate, None without a common name. Raises ApiError 401."""
        return self._clients.of(der)

    def passed_on(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of an authenticated request, without those that name users."""
        if self._proxies is None:
            return headers
        names = self._proxies[1]
        return {name: value for name, value in headers.items() if not names.has(name)}


class _Certificates(Generic[Read]):
    """Client certificates that the CAs of a PEM bundle have issued, and what ``read`` reads of each."""

    def __init__(self, clock: Clock, cas: bytes, read: Callable[[x509.Certificate], Read]) -> None:
        self._clock, self._read = clock, read
        self._cas = key_pairs.certificates(cas) if cas else []
        self._known: dict[bytes, tuple[Read, float, float]] = {}

    def of(self, der: bytes) -> Read:
        """What is read of a certificate. Raises ApiError 401 if that fails, for an unknown CA, or if the certificate is
        not valid now."""
        known = self._known.get(der)
        if known is None:
            try:
                known = self._verified(x509.load_der_x509_certificate(der))
            except _UNREADABLE as error:
                raise unauthorized() from error
            if len(self._known) >= _REMEMBERED_CERTIFICATES:
                self._known.clear()
            self._known[der] = known
        found, first, last = known
        if not first <= self._clock.now().timestamp() <= last:
            raise unauthorized()
        return found

    def _verified(self, certificate: x509.Certificate) -> tuple[Read, float, float]:
        if not (for_clients(certificate) and any(_issued_by(certificate, ca) for ca in self._cas)):
            raise unauthorized()
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return self._read(certificate), start.timestamp(), end.timestamp()


def _user_of(certificate: x509.Certificate) -> User | None:
    found = identity_of(certificate)
    return None if found is None else _authenticated(User(*found))


def _authorization(headers: Mapping[str, str]) -> str | None:
    """The Authorization header, or the token in the subprotocols of a WebSocket. Raises ApiError 401."""
    header = headers.get("authorization")
    try:
        found = None if header else websocket.bearer(headers)
    except ValueError:
        raise unauthorized() from None
    return f"Bearer {found[0]}" if found else header


def _authenticated(user: User) -> User:
    """The user with the group system:authenticated."""
    if user.name == ANONYMOUS.name or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def _issued_by(certificate: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
