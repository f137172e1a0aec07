"""Requests to an API server in this process, on the loop of the test."""

import asyncio
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request, Response, Stream
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.embedded import ADMIN, EmbeddedServer

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass
class Api:
    """Requests to one server, by an administrator or another user."""

    server: EmbeddedServer
    user: User = ADMIN

    async def call(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """options: query (dict), and headers (dict)."""
        headers = {"content-type": "application/json", "user-agent": "test/1", **options.get("headers", {})}
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        query = tuple((key, str(value)) for key, value in options.get("query", {}).items())
        transport = InProcessTransport(self.server.api, self.user)
        return await transport.send(Request(method, path, query, headers, data))

    async def json(self, method: str, path: str, body: object = None, *, status: int = 200, **options: Any) -> Any:
        """The decoded response, which must have this status."""
        answer = await self.call(method, path, body, **options)
        assert answer.status == status, answer.body.decode()
        return msgspec.json.decode(answer.body)

    async def config_map(self, name: str, **content: Any) -> Any:
        """A new ConfigMap; metadata fields under ``meta``."""
        metadata = {"name": name, **content.pop("meta", {})}
        return await self.json("POST", CONFIG_MAPS, {"metadata": metadata, **content}, status=201)

    async def watch(self, path: str, seconds: float = 1.0, **query: Any) -> "Watching":
        """Start a watch, whose events can be read after ``seconds`` at the earliest."""
        request = Request("GET", path, tuple((k, str(v)) for k, v in {"watch": "true", **query}.items()))
        watching = Watching(InProcessTransport(self.server.api, self.user), request)
        watching.task = asyncio.create_task(watching.run())
        await asyncio.sleep(seconds)
        return watching


class Watching:
    """A running watch."""

    def __init__(self, transport: InProcessTransport, request: Request) -> None:
        self._transport = transport
        self._request = request
        self.task: asyncio.Task[None] | None = None
        self.status = 0
        self.events: list[Any] = []

    async def run(self) -> None:
        async with self._transport.stream(self._request) as stream:
            self.status = stream.status
            await self._read(stream)

    async def _read(self, stream: Stream) -> None:
        rest = b""
        async for chunk in stream.chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            self.events += [msgspec.json.decode(line) for line in lines if line]

    def seen(self) -> list[tuple[str, str]]:
        """Types and names."""
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in self.events]

    async def end(self) -> None:
        """End the watch. Raises if the response is not a watch."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait([self.task])
        if not self.task.cancelled():
            self.task.result()
        assert self.status == 200


async def started(certificates: Certificates) -> Api:
    """A fresh server."""
    server = EmbeddedServer(LoopClock(EPOCH), random.Random(1), certificates)
    await server.start()
    api = Api(server)
    account = {"metadata": {"name": "default"}}
    await api.json("POST", "/api/v1/namespaces/default/serviceaccounts", account, status=201)
    return api
