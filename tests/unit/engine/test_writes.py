"""Writes that decide again after a conflict."""

import asyncio
import json

import pytest

from kcm_cli.api.core import NAMESPACES, Namespace
from kcm_cli.component.clock import LoopClock
from kcm_cli.engine import writes
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response
from tests.unit.sandbox.nodes.world import EPOCH


def document(uid: str) -> bytes:
    metadata = {"name": "n", "uid": uid, "resourceVersion": "1"}
    return json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).encode()


class Server:
    """Refuses every update with a conflict; holds an object with this uid."""

    def __init__(self, uid: str) -> None:
        self.uid = uid
        self.puts = 0

    async def send(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(200, {}, document(self.uid))
        self.puts += 1
        status = {"kind": "Status", "reason": "Conflict", "code": 409, "message": "moved on"}
        return Response(409, {}, json.dumps(status).encode())


def test_another_object_of_the_same_name_is_not_written():
    server = Server("second")

    async def work() -> None:
        client = Client(server, limiter=Unlimited(), user_agent="t", clock=LoopClock(EPOCH))  # type: ignore[arg-type]
        first: Namespace = NAMESPACES.decode(document("first"))
        with pytest.raises(NotFound, match="uid first"):
            await writes.retry_on_conflict(client, NAMESPACES, first, lambda one: {("metadata", "labels"): {"a": "b"}})

    asyncio.run(work())
    assert server.puts == 1
