"""Asks components on this machine for their health."""

import aiohttp

_TIMEOUT = aiohttp.ClientTimeout(total=5)


async def healthz(port: int) -> str:
    """What is wrong with the component that serves on a port; nothing if it is well.

    upstream: pkg/probe/http/http.go
    """
    url = f"https://127.0.0.1:{port}/healthz"
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session, session.get(url, ssl=False) as answer:
            return "" if answer.status == 200 else f"HTTP probe failed with statuscode: {answer.status}"
    except aiohttp.ClientConnectorError as error:
        why = "connection refused" if isinstance(error.os_error, ConnectionRefusedError) else str(error.os_error)
        return f'Get "{url}": dial tcp 127.0.0.1:{port}: connect: {why}'
    except (aiohttp.ClientError, TimeoutError) as error:
        return f'Get "{url}": {error}'
