"""Who a request is from: the value of its Authorization header, and how it is renewed.

Guarantees of ``Renewing``: one renewal at a time, however many requests wait for it and share its outcome; a value
that can still be used stays in use when renewing fails. Certificates are no header: see ``tls``.

upstream: staging/src/k8s.io/client-go/transport/token_source.go
"""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kcm_cli.component.clock import Clock
from kcm_cli.rest.errors import CredentialsError

log = logging.getLogger(__name__)

FILE_PERIOD_S = 50.0
"""How long a token file is believed: the kubelet renews it long before the token ends."""


class Credentials(Protocol):
    """Gives the Authorization header of requests; an empty text stands for none."""

    def current(self) -> str | None:
        """The header, or None where it must be renewed first. No I/O."""

    async def renew(self) -> str:
        """A header that can be used now. Raises CredentialsError."""

    def reject(self, header: str) -> None:
        """The server did not accept this header (401)."""


class Fixed:
    """A header that never changes."""

    def __init__(self, header: str = "") -> None:
        self._header = header

    def current(self) -> str | None:
        return self._header

    async def renew(self) -> str:
        return self._header

    def reject(self, header: str) -> None:
        return None


ANONYMOUS = Fixed()


@dataclass(frozen=True, slots=True)
class Lease:
    """A header and for how long it may be used (None: until it is rejected)."""

    header: str
    lifetime_s: float | None


Source = Callable[[], Awaitable[Lease]]


class Renewing:
    """A header from a source that is asked again when the lease ends or the server rejects it."""

    def __init__(self, source: Source, clock: Clock, first: Lease | None = None) -> None:
        self._source = source
        self._clock = clock
        self._header = ""
        self._until = float("-inf")
        self._lock = asyncio.Lock()
        self._failure: CredentialsError | None = None
        self._failed_at = float("-inf")
        if first is not None:
            self._take(first)

    def current(self) -> str | None:
        return self._header if self._clock.monotonic() < self._until else None

    async def renew(self) -> str:
        asked = self._clock.monotonic()
        async with self._lock:
            header = self.current()
            if header is not None:
                return header
            if self._failure is not None and self._failed_at > asked:
                raise self._failure  # of the renewal that this one has waited for
            return await self._renew()

    def reject(self, header: str) -> None:
        if header == self._header:
            self._header, self._until = "", float("-inf")

    async def _renew(self) -> str:
        try:
            lease = await self._source()
        except CredentialsError as error:
            if not self._header:
                self._failure, self._failed_at = error, self._clock.monotonic()
                raise
            log.error("Unable to rotate token", extra={"fields": {"err": str(error)}})
            return self._header
        self._take(lease)
        return lease.header

    def _take(self, lease: Lease) -> None:
        self._header = lease.header
        now = self._clock.monotonic()
        self._until = float("inf") if lease.lifetime_s is None else now + lease.lifetime_s


def bearer(token: str) -> str:
    """The header of a bearer token."""
    return f"Bearer {token}"


def basic(user: str, password: str) -> str:
    """The header of a name and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def from_file(path: Path, clock: Clock) -> Renewing:
    """The token in a file, which is read again about once a minute."""

    async def source() -> Lease:
        return Lease(bearer(read_token(path)), FILE_PERIOD_S)

    return Renewing(source, clock)


def read_token(path: Path) -> str:
    """Raises CredentialsError where the file cannot be read or is empty."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise CredentialsError(f"cannot read token file {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CredentialsError(f"token file {path} is not text") from error
    if not token:
        raise CredentialsError(f"token file {path} is empty")
    return token
