"""A transport of one user: adds the Authorization header, over a session or the in-process sandbox.

Guarantees: a request that is answered with 401, and so had no effect, is sent once more with renewed credentials. Where
they cannot be renewed, the 401 is returned.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from kcm_cli.rest.credentials import Credential, Credentials
from kcm_cli.rest.errors import CredentialsError
from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport, Unreachable, is_local

log = logging.getLogger(__name__)


class Authorized(Around):
    """Adds one user's header. Several users may share one transport."""

    def __init__(self, transport: Transport, credentials: Credentials) -> None:
        super().__init__(transport)
        self.local = is_local(transport)
        self._credentials = credentials

    async def send(self, request: Request) -> Response:
        credential = self._credentials.current() or await self._renew(request)
        response = await self._inner.send(_with(request, credential))
        if response.status == 401 and (renewed := await self._instead_of(credential)):
            return await self._inner.send(_with(request, renewed))
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        credential = self._credentials.current() or await self._renew(request)
        async with self._inner.stream(_with(request, credential)) as stream:
            renewed = await self._instead_of(credential) if stream.status == 401 else None
            if renewed is None:
                yield stream
                return
        async with self._inner.stream(_with(request, renewed)) as stream:
            yield stream

    async def _renew(self, request: Request) -> Credential:
        try:
            return await self._credentials.renew()
        except CredentialsError as error:
            raise Unreachable(f"{request.method} {request.path}: no credentials: {error}") from error

    async def _instead_of(self, credential: Credential) -> Credential | None:
        """Credentials in place of rejected ones, where there are others."""
        self._credentials.reject(credential)
        try:
            renewed = await self._credentials.renew()
        except CredentialsError as error:
            log.warning("Credentials were rejected and cannot be renewed", extra={"fields": {"err": str(error)}})
            return None
        return renewed if renewed != credential else None


def _with(request: Request, credential: Credential) -> Request:
    if not credential.header:
        return request
    headers = {**request.headers, "authorization": credential.header}
    return replace(request, headers=headers)
