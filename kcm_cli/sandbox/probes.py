"""Checks the health of components on this machine."""

import asyncio
import ssl

import httptools

from kcm_cli.rest.connection import Connection

_TIMEOUT_S = 5.0


async def healthz(port: int) -> str:
    """The error of a component that serves on a port; empty if it is healthy.

    Its certificate is not verified, like in upstream's prober.

    upstream: pkg/probe/http/http.go
    """
    url = f"https://127.0.0.1:{port}/healthz"
    request = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, connection = await loop.create_connection(Connection, "127.0.0.1", port, ssl=_unverified())
            try:
                answer = await connection.ask(request)
            finally:
                connection.close()
    except TimeoutError:
        return f'Get "{url}": context deadline exceeded'
    except (OSError, httptools.HttpParserError) as error:
        why = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error)
        return f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: {why}'
    return "" if answer.status == 200 else f"HTTP probe failed with statuscode: {answer.status}"


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
