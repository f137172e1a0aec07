"""Reads the secure port (10257) of a controller manager."""

import asyncio

from kcm_cli.rest.transport import Request, RequestError, Response, Transport, Untrusted


class ReadError(Exception):
    """A manager cannot be read; the text says why and what to do."""


class TooLarge(ReadError):
    """An answer is larger than the caller reads."""


class ManagerPort:
    """The port of a manager. url: its address, for errors."""

    def __init__(self, transport: Transport, url: str) -> None:
        self._transport = transport
        self._url = url

    async def get(
        self, path: str, query: tuple[tuple[str, str], ...] = (), *, most_bytes: int, timeout_s: float = 10.0
    ) -> Response:
        """The answer, whatever its status, of which no more than ``most_bytes`` are read. Raises ReadError where there
        is none, TooLarge for a larger one."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._answer(Request("GET", path, query, timeout_s=timeout_s), most_bytes)
        except TimeoutError:
            raise ReadError(f"{self._url}{path}: no whole answer within {timeout_s:g} s") from None
        except RequestError as error:
            raise _unanswered(error) from error

    async def read(
        self, path: str, query: tuple[tuple[str, str], ...] = (), *, most_bytes: int, timeout_s: float = 10.0
    ) -> bytes:
        """The body of a successful answer. Raises ReadError, also as ``get`` does."""
        answer = await self.get(path, query, most_bytes=most_bytes, timeout_s=timeout_s)
        if answer.status != 200:
            raise ReadError(f"{self._url}{path}: {_refused(answer.status, path)}")
        return answer.body

    async def _answer(self, request: Request, most_bytes: int) -> Response:
        body = bytearray()
        async with self._transport.stream(request) as answer:
            async for chunk in answer.chunks:
                body += chunk
                if len(body) > most_bytes:
                    raise TooLarge(f"{self._url}{request.path}: more than {most_bytes >> 20} MiB")
        return Response(answer.status, answer.headers, bytes(body))


def _unanswered(error: RequestError) -> ReadError:
    if isinstance(error, Untrusted):
        return ReadError(str(error))
    return ReadError(f"{error} (does the manager run? --server names its address)")


def _refused(status: int, path: str) -> str:
    if status == 401:
        return "401 Unauthorized: the cluster does not know these credentials (--token, --kubeconfig)"
    if status == 403:
        return f"403 Forbidden: name a user with --token or --kubeconfig who may get the nonResourceURL {path}"
    if status == 404:
        return "HTTP 404: this manager does not have the page"
    return f"HTTP {status}"
