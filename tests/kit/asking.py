"""An API server in the process of the test, with a simple client."""

import asyncio
import json
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import User
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.embedded import ADMIN, EmbeddedServer

T = TypeVar("T")
Tree = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    doc: Tree
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        return str(self.doc.get("message", ""))

    @property
    def causes(self) -> list[Tree]:
        found: list[Tree] = (self.doc.get("details") or {}).get("causes") or []
        return found


class Api:
    """Sends requests to a server of its own. ``namespace`` creates namespaces, so that tests can share a server."""

    def __init__(self, certificates: Certificates) -> None:
        self._runner = asyncio.Runner()
        self._count = 0
        self.clock = LoopClock()
        self.server = EmbeddedServer(self.clock, random.Random(7), certificates)
        self.run(self.server.start())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def close(self) -> None:
        self._runner.close()

    async def ask(
        self, method: str, path: str, doc: Tree | None = None, *, user: User = ADMIN, token: str = "", **headers: str
    ) -> Answer:
        target, _, query = path.partition("?")
        pairs = tuple((part.partition("=")[0], part.partition("=")[2]) for part in query.split("&") if part)
        body = b"" if doc is None else json.dumps(doc).encode()
        named = {"content-type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
        transport = InProcessTransport(self.server.api, None if token else user, token=token)
        response = await transport.send(Request(method, target, pairs, named, body))
        warnings = tuple(
            part.rstrip(", ").removesuffix('"').replace('\\"', '"')
            for part in response.headers.get("warning", "").split('299 - "')
            if part
        )
        return Answer(response.status, json.loads(response.body) if response.body[:1] == b"{" else {}, warnings)

    def get(self, path: str, **options: Any) -> Answer:
        return self.run(self.ask("GET", path, **options))

    def post(self, path: str, doc: Tree, **options: Any) -> Answer:
        return self.run(self.ask("POST", path, doc, **options))

    def put(self, path: str, doc: Tree, **options: Any) -> Answer:
        return self.run(self.ask("PUT", path, doc, **options))

    def delete(self, path: str, **options: Any) -> Answer:
        return self.run(self.ask("DELETE", path, **options))

    def merge(self, path: str, doc: Tree, **options: Any) -> Answer:
        return self.run(self.ask("PATCH", path, doc, content_type="application/merge-patch+json", **options))

    def make(self, path: str, doc: Tree, **options: Any) -> Tree:
        """Create an object. Raises if that fails."""
        answer = self.post(path, doc, **options)
        assert answer.status == 201, answer.doc
        return answer.doc

    def namespace(self, *, account: bool = True, **labels: str) -> str:
        """A new namespace with its default service account, which a controller would create."""
        self._count += 1
        name = f"ns{self._count}"
        marks = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
        self.make("/api/v1/namespaces", {"metadata": {"name": name, "labels": marks}})
        if account:
            self.make(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return name


def pod(name: str = "p", **spec: Any) -> Tree:
    """A pod with one container and the other fields of ``spec``."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
