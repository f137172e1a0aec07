"""Requests to an API server in this process, on the loop of the test."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from types import MappingProxyType
from typing import Any

import msgspec

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request, Stream
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.embedded import ADMIN, EmbeddedServer

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
Tree = dict[str, Any]
_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Answer:
    """A response. ``doc``: its body, decoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def doc(self) -> Tree:
        found: Tree = msgspec.json.decode(self.body) if self.body[:1] == b"{" else {}
        return found

    @property
    def message(self) -> str:
        return str(self.doc.get("message", ""))

    @property
    def causes(self) -> list[Tree]:
        found: list[Tree] = (self.doc.get("details") or {}).get("causes") or []
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        parts = self.headers.get("warning", "").split('299 - "')
        return tuple(part.rstrip(", ").removesuffix('"').replace('\\"', '"') for part in parts if part)


@dataclass
class Api:
    """Requests to one server, by an administrator or another user."""

    server: EmbeddedServer
    user: User = ADMIN
    _namespaces: Iterator[int] = field(default_factory=lambda: count(1))

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] = _NONE,
        headers: Mapping[str, str] = _NONE,
        user: User | None = None,
        token: str = "",
        **named: str,
    ) -> Answer:
        """path: may end in a query. named: more headers, as ``content_type``."""
        sent = {"content-type": "application/json", "user-agent": "test/1", **headers}
        sent |= {name.replace("_", "-"): value for name, value in named.items()}
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        place, _, words = path.partition("?")
        asked = [part.partition("=")[::2] for part in words.split("&") if part]
        pairs = (*asked, *((key, str(value)) for key, value in query.items()))
        transport = InProcessTransport(self.server.api, None if token else user or self.user, token=token)
        answer = await transport.send(Request(method, place, pairs, sent, data))
        return Answer(answer.status, answer.headers, answer.body)

    async def json(self, method: str, path: str, body: object = None, *, status: int = 200, **options: Any) -> Any:
        """The decoded response, which must have this status."""
        answer = await self.call(method, path, body, **options)
        assert answer.status == status, answer.body.decode()
        return msgspec.json.decode(answer.body)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def post(self, path: str, doc: Tree, **options: Any) -> Answer:
        return await self.call("POST", path, doc, **options)

    async def put(self, path: str, doc: Tree, **options: Any) -> Answer:
        return await self.call("PUT", path, doc, **options)

    async def delete(self, path: str, **options: Any) -> Answer:
        return await self.call("DELETE", path, **options)

    async def merge(self, path: str, doc: Tree, **options: Any) -> Answer:
        return await self.call("PATCH", path, doc, content_type="application/merge-patch+json", **options)

    async def make(self, path: str, doc: Tree, **options: Any) -> Any:
        """Create an object. Raises if that fails."""
        return await self.json("POST", path, doc, status=201, **options)

    async def namespace(self, *, account: bool = True, **labels: str) -> str:
        """A new namespace with its default service account, which a controller would create."""
        name = f"ns{next(self._namespaces)}"
        marks = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
        await self.make("/api/v1/namespaces", {"metadata": {"name": name, "labels": marks}})
        if account:
            await self.make(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return name

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
    await api.make("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    return api


def pod(name: str = "p", **spec: Any) -> Tree:
    """A pod with one container and the other fields of ``spec``."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
