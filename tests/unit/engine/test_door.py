"""Writes through the door are named, counted once, and can be intercepted."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS
from kcm_cli.api.core import PODS
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.engine.door import Door, Send, Write, count_writes, write_of
from kcm_cli.machinery import codec
from kcm_cli.machinery.protowire import packed
from kcm_cli.rest.client import Client
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, TransportError
from tests.unit.controllers.controlling import metric

POD = b'{"metadata": {"name": "a", "namespace": "n", "uid": "u"}}'


class Server:
    """Answers with a pod; the first answers are those given."""

    def __init__(self, *first: Response) -> None:
        self.first = list(first)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return self.first.pop(0) if self.first else Response(200, {}, POD)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        raise NotImplementedError

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("POST", "/api/v1/namespaces/n/pods", ("create", "", "pods", "n", "")),
        ("DELETE", "/api/v1/namespaces/n/pods/a", ("delete", "", "pods", "n", "a")),
        ("DELETE", "/api/v1/namespaces/n/pods", ("deletecollection", "", "pods", "n", "")),
        ("PATCH", "/api/v1/namespaces/n/pods/a/status", ("patch", "", "pods/status", "n", "a")),
        ("PUT", "/apis/apps/v1/namespaces/n/deployments/a", ("update", "apps", "deployments", "n", "a")),
        ("PUT", "/apis/apps/v1/namespaces/n/deployments/a/status", ("update", "apps", "deployments/status", "n", "a")),
        ("PUT", "/api/v1/namespaces/a/finalize", ("update", "", "namespaces/finalize", "", "a")),
        ("PUT", "/api/v1/namespaces/a/status", ("update", "", "namespaces/status", "", "a")),
        ("DELETE", "/api/v1/namespaces/a", ("delete", "", "namespaces", "", "a")),
        ("POST", "/api/v1/nodes", ("create", "", "nodes", "", "")),
        ("PATCH", "/apis/x.test/v1/things/a", ("patch", "x.test", "things", "", "a")),
        ("POST", "/apis", ("create", "", "", "", "")),
    ],
)
def test_a_write_is_named_after_its_request(method: str, path: str, expected: tuple[str, ...]) -> None:
    found = write_of("c", Request(method, path))
    assert (found.verb, found.group, found.resource, found.namespace, found.name) == expected


def door(server: Server, registry: Registry, **options: object) -> Door:
    client = Client(server, limiter=Unlimited(), user_agent="test", clock=LoopClock())
    return Door(client, "replicaset-controller", count_writes(registry), **options)  # type: ignore[arg-type]


def test_writes_are_counted_once_and_reads_are_not() -> None:
    registry, server = Registry(), Server(Response(429, {"retry-after": "0"}, b""))

    async def life() -> None:
        ours = door(server, registry)
        await ours.create(PODS, "n", POD)
        await ours.get(PODS, "n", "a")
        await ours.faster(2.0, 1).delete(PODS, "n", "a")

    asyncio.run(life())
    assert [request.method for request in server.requests] == ["POST", "POST", "GET", "DELETE"]
    counted = "kcm_controller_writes_total"
    labels = {"controller": "replicaset-controller", "resource": "pods"}
    assert metric(registry, counted, verb="create", **labels) == 1
    assert metric(registry, counted, verb="delete", **labels) == 1
    assert metric(registry, counted) == 2


def test_an_interceptor_can_lose_an_answer_or_respond() -> None:
    seen: list[tuple[str, str]] = []

    async def intercept(write: Write, send: Send) -> Response:
        seen.append((write.controller, write.verb))
        if write.verb == "create":
            return Response(201, {}, POD)
        await send(write.request)
        raise TransportError("the answer was lost")

    async def life() -> None:
        server = Server()
        ours = door(server, Registry(), interceptor=intercept)
        assert (await ours.create(PODS, "n", POD)).name == "a"
        assert server.requests == []
        with pytest.raises(TransportError):
            await ours.delete(PODS, "n", "a")
        assert [request.method for request in server.requests] == ["DELETE"]

    asyncio.run(life())
    assert seen == [("replicaset-controller", "create"), ("replicaset-controller", "delete")]


REVISION = b'{"metadata":{"name":"a","namespace":"n"},"data":{"b":1},"revision":1}'
EXACT = REVISION.replace(b'{"b":1}', b'{"b": 1}')
STORED = b"k8s\x00" + packed(2, packed(2, packed(1, b'{"b": 1}')))


def refused(reason: str = "Invalid", code: int = 422) -> Response:
    return Response(code, {}, json.dumps({"kind": "Status", "reason": reason, "code": code}).encode())


@pytest.mark.parametrize(
    ("answers", "sent"),
    [
        pytest.param([refused(), Response(200, {}, STORED)], [REVISION, b"", EXACT], id="stored with spaces"),
        pytest.param([refused(), Response(200, {}, REVISION)], [REVISION, b""], id="no protobuf"),
        pytest.param([refused(), refused("Forbidden", 403)], [REVISION, b""], id="may not be read"),
        pytest.param([refused("Conflict", 409)], [REVISION], id="another error"),
    ],
)
def test_a_refused_update_is_repeated_with_the_stored_bytes(answers: list[Response], sent: list[bytes]) -> None:
    server = Server(*answers)
    errors = []

    async def work() -> None:
        own = door(server, Registry())
        try:
            await own.update(CONTROLLER_REVISIONS, "n", "a", codec.decode_doc(REVISION))
        except ApiError as error:
            errors.append(error.status)

    asyncio.run(work())
    assert [request.body or b"" for request in server.requests] == sent
    assert errors == ([] if EXACT in sent else [answers[0].status])
