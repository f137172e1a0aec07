"""Credentials of requests: the value of the Authorization header, and its renewal.

Guarantees of ``Renewing``: one renewal at a time, whose result all waiting requests share; a value that has not expired
stays in use when a renewal fails. For client certificates see ``tls``.

upstream: staging/src/k8s.io/client-go/transport/token_source.go
"""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kcm_cli.component.clock import Clock
from kcm_cli.machinery.formats import SPACES
from kcm_cli.rest.errors import CredentialsError

log = logging.getLogger(__name__)

FILE_PERIOD_S = 50.0
"""How long a token file is believed: the kubelet renews it long before the token ends."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A header, or a certificate and its key (PEM), or both, with the time for which to use them.

    None stands for: until the server rejects them.
    """

    header: str = field(repr=False)
    lifetime_s: float | None = field(default=None, compare=False)
    certificate: tuple[bytes, bytes] | None = field(default=None, repr=False)


class Credentials(Protocol):
    """Gives the Authorization header of requests; an empty text stands for none."""

    def current(self) -> Credential | None:
        """The credential to use, or None where it must be renewed first. No I/O."""

    async def renew(self) -> Credential:
        """A valid credential, renewed if necessary. Raises CredentialsError."""

    def reject(self, credential: Credential) -> None:
        """The server did not accept this credential (401)."""


class Fixed:
    """A fixed header."""

    def __init__(self, header: str = "") -> None:
        self._credential = Credential(header)

    def current(self) -> Credential | None:
        return self._credential

    async def renew(self) -> Credential:
        return self._credential

    def reject(self, credential: Credential) -> None:
        return None


ANONYMOUS = Fixed()
Source = Callable[[], Awaitable[Credential]]


class Renewing:
    """A credential from a source that is asked again when the credential ends or the server rejects it."""

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._credential: Credential | None = None
        self._certificate: tuple[bytes, bytes] | None = None
        self._until = float("-inf")
        self._lock = asyncio.Lock()
        self._failure: CredentialsError | None = None
        self._tried_at = float("-inf")

    @property
    def certificate(self) -> tuple[bytes, bytes] | None:
        """The certificate and key (PEM) of the last renewal."""
        return self._certificate

    def current(self) -> Credential | None:
        return self._credential if self._clock.monotonic() < self._until else None

    async def renew(self) -> Credential:
        asked = self._clock.monotonic()
        async with self._lock:
            credential = self.current()
            if credential is not None:
                return credential
            if self._tried_at > asked:
                if self._credential is not None:
                    return self._credential  # which may have ended already, or is the old one
                if self._failure is not None:
                    raise self._failure
            return await self._renew()

    def reject(self, credential: Credential) -> None:
        if credential is self._credential:
            self._credential, self._until = None, float("-inf")

    async def _renew(self) -> Credential:
        try:
            credential = await self._source()
        except CredentialsError as error:
            self._failure, self._tried_at = error, self._clock.monotonic()
            if self._credential is None:
                raise
            log.error("Unable to rotate token", extra={"fields": {"err": str(error)}})
            return self._credential
        self._credential, self._certificate, self._failure = credential, credential.certificate, None
        lifetime_s = float("inf") if credential.lifetime_s is None else credential.lifetime_s
        self._tried_at = self._clock.monotonic()
        self._until = self._tried_at + lifetime_s
        return credential


def bearer(token: str) -> str:
    """The header of a bearer token."""
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header of a name and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def from_file(path: Path, clock: Clock, *, before: str = "") -> Renewing:
    """The token in a file, which is read again about once a minute. before: one to use until that has succeeded."""
    instead = before

    async def source() -> Credential:
        nonlocal instead
        try:
            token = read_token(path)
        except CredentialsError:
            if not instead:
                raise
            return Credential(bearer(instead), FILE_PERIOD_S)
        instead = ""
        return Credential(bearer(token), FILE_PERIOD_S)

    return Renewing(source, clock)


def read_token(path: Path) -> str:
    """Raises CredentialsError where the file cannot be read or is empty."""
    try:
        token = path.read_text(encoding="utf-8").strip(SPACES)
    except OSError as error:
        raise CredentialsError(f"cannot read token file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CredentialsError(f"token file {path} is not text") from error
    if not token:
        raise CredentialsError(f"token file {path} is empty")
    return token
