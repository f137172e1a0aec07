"""An HTTPS server of this process for webhooks, which responds to each review with the result of ``respond``."""

import asyncio
import base64
import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from kcm_cli.sandbox.apiserver.security.certificates import Certificates

Tree = dict[str, Any]
Respond = Callable[[Tree], bytes | Tree]


class HookServer:
    """Serves with the API server's certificate while inside. asked: the received reviews. paths: all requests with
    their methods. redirects: path -> status and location."""

    def __init__(self, certificates: Certificates, folder: Path, respond: Respond) -> None:
        self.asked: list[Tree] = []
        self.paths: list[str] = []
        self.redirects: dict[str, tuple[int, str]] = {}
        self.status = 200
        self._respond = respond
        for name, data in (("crt", certificates.serving.certificate), ("key", certificates.serving.key)):
            (folder / name).write_bytes(data)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(folder / "crt", folder / "key")
        self.bundle = base64.b64encode(certificates.ca.certificate).decode()

    def config(self, path: str = "/hook") -> Tree:
        """A clientConfig for this server."""
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.bundle}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *failure: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        lengths = (int(line[15:]) for line in asked.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        path = asked.split(b" ")[1].decode().partition("?")[0]
        self.paths.append(asked.split(b" HTTP")[0].decode())
        if (redirect := self.redirects.get(path)) is not None:
            status, location = redirect
            head = f"HTTP/1.1 {status} X\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
            writer.write(head.encode())
            await writer.drain()
            writer.close()
            return
        review = json.loads(await reader.readexactly(next(lengths)))
        self.asked.append(review)
        answer = self._respond(review)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        head = f"HTTP/1.1 {self.status} X\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()
